"""The interface of delegates: their base classes, the registry of those that are installed, and the partitioning of graphs.
Modules here use nodes and tensors, but neither files nor interpreters.
"""
