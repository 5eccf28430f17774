"""Functions of one operand: floats by formulas, quantized numbers by look-up tables."""
