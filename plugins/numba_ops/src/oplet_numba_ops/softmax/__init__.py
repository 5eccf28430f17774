"""exp and what is computed from it: LOGISTIC, SOFTMAX and LOG_SOFTMAX. What comes in computes with floats or with tables for
8-bit numbers.
"""
