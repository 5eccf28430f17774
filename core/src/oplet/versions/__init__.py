"""Versions of operators: the one that a node needs, the runtimes that serve it, and the lowest that a model can be written with. What comes in
follows LiteRT's rules, operator by operator.
"""
