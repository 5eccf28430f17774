"""`oplet compare`: runs a model in two ways, candidate and baseline, and compares the results.

Modules here open or run one of them, or judge differences.
"""
