"""Functions of one operand: floats by formulas, quantized numbers by look-up tables. Each output depends only on the input at the
same position.
"""
