"""The common parts of operators with weights or windows."""
