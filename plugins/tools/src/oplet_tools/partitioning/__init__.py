"""`oplet partition`: the nodes of a model that delegates would claim, as data and as a drawing. What comes in lets delegates claim nodes and
runs none.
"""
