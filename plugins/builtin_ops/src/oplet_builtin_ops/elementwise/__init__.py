"""Shared parts of elementwise operators."""
