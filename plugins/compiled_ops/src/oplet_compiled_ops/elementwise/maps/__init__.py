"""Unary functions: of floats by formulas, of quantized numbers by look-up tables. Each output depends only on the input at the
same position.
"""
