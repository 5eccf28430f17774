"""Shared parts of operators that move, gather, pad, resize and reduce."""
