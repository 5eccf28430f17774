"""Delegates as their authors and users see them: the classes to inherit from, the registry of those that are installed, and how a graph is cut
into partitions. What comes in knows nodes and tensors, and neither files nor interpreters.
"""
