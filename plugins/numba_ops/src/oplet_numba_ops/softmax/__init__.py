"""exp and what is computed from it: LOGISTIC, SOFTMAX and LOG_SOFTMAX; and rows divided by their norms. What comes in computes with floats,
or with tables for integers.
"""
