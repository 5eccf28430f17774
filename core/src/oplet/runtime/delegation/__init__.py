"""Delegation: delegates claim nodes, their kernels replace these, and the original nodes are restored where shapes demand it.
Modules here drive executors; other subpackages call them only through `Session.runners`.
"""
