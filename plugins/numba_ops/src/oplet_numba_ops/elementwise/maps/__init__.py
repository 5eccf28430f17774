"""Functions of one operand: of floats by formulas, of quantized numbers by tables. What comes in computes an output from the input
of the same place, and nothing else.
"""
