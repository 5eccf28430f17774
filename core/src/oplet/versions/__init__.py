"""Versions of operators: the lowest that a node needs, and the first runtime release that has it.

Modules here follow LiteRT's rules, operator by operator.
"""
