"""Recorded cases in every state that a process may find: empty caches, kernels that arrive while it runs, plans of other processes."""
