"""`oplet partition`: the nodes of a model that delegates would claim, as data and as a drawing.

Modules here let delegates claim nodes and run none.
"""
