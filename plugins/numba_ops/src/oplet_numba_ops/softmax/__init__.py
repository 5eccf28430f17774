"""exp and what is made of it: LOGISTIC, SOFTMAX and LOG_SOFTMAX. What comes in computes with floats or with the tables of 8-bit numbers."""
