"""Integer and fixed-point arithmetic of the .tflite format, and look-up tables of functions."""
