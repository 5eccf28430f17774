"""Linear algebra on batches of matrices (the last two dimensions). Non-unique factors follow LAPACK through numpy.

Small operators share a module by kind; each is a constant there, named like the operator.
"""
