"""Stored plans: what was prepared and bound for a model, on disk, for the next process that opens it."""
