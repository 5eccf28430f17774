"""Operators in C and C++."""
