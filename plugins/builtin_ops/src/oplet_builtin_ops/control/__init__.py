"""Calls of other subgraphs, state that outlives a run, and random numbers."""
