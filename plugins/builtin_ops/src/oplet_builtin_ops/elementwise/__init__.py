"""The common parts of elementwise operators."""
