"""Runs of a model on many rows.

`reading` has the sources of rows, `preparing` runs them on workers and encodes their results, `keeping` writes these so that an
interrupted run can be resumed, and `run` does it all.
"""
