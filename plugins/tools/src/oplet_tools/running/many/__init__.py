"""Runs of a model on many rows. `reading` has where rows come from, `preparing` runs them on workers and makes their results, `keeping` writes
these so that an interrupted run can go on, and `run` does it all.
"""
