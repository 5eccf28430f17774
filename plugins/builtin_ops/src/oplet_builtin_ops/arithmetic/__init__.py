"""The integer arithmetic of the format, and the tables that stand in for functions."""
