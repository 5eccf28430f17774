"""Delegation: delegates claim nodes, their kernels replace these, and the original nodes are restored where shapes demand it. What comes in
drives executors; lower rooms call it only through `Session.runners`.
"""
