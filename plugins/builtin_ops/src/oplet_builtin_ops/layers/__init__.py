"""Shared parts of operators with weights or sliding windows."""
