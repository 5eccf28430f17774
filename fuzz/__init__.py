"""Fuzzing: valid models are mutated and run under limits; only errors of oplet may be raised."""
