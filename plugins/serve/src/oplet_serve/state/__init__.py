"""State that requests leave to one another: sequences, and runs of a model that lie in it.

Each module imports only those before it: runner, sequences.
"""
