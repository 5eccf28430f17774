"""exp and what builds on it: LOGISTIC, SOFTMAX, LOG_SOFTMAX of floats and of integers. Normalizations of rows are here, too.

Here are the sources of kernels; those of whole rows are declared in `ops`, where their arguments are written.
"""
