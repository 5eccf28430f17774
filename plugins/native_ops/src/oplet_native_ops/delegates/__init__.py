"""Delegates from third-party libraries, adapted to oplet's delegate interface.

`entry` makes the library's delegate, `delegate` applies it, `graph` is a subgraph as the library sees it, `claim` carries out what it asks
for, and `kernel` runs a partition.
"""
