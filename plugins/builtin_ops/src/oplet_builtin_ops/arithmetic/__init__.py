"""The integer arithmetic of the format, and look-up tables of functions."""
