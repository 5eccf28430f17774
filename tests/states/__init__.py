"""Recorded cases in every state that a process may find: empty caches, plans of other processes, other levels of machine code."""
