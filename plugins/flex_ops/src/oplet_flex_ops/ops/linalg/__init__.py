"""Linear algebra on batches of matrices, which are the last two dimensions. Factors that are not unique follow LAPACK through numpy.

Small operators share a module by kind; each is a constant there, named like the operator.
"""
