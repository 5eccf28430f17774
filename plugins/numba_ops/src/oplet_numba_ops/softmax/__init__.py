"""exp and what builds on it: LOGISTIC, SOFTMAX, LOG_SOFTMAX; and normalizations of rows."""
