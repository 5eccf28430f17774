"""Fuzzing: mutate valid models, run each under limits, and see that nothing but errors of oplet comes out."""
