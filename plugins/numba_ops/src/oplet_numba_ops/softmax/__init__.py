"""exp and what builds on it: LOGISTIC, SOFTMAX, LOG_SOFTMAX. Normalizations of rows are here, too."""
