"""`oplet compare`: a model run in two ways, candidate and baseline, and the differences. What comes in opens or runs one of them, or judges
differences.
"""
