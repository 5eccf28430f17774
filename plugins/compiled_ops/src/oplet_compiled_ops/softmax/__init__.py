"""exp and what builds on it: LOGISTIC, SOFTMAX, LOG_SOFTMAX of floats and of integers. Normalizations of rows are here, too."""
