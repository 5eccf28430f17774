"""Conversion of values between users and tensors: real values in and out, a quantized tensor's integers on request.

`quantization` is the arithmetic, `conversion` the rules for inputs, and `notices` the messages about what was done to them. `picture_parts` and
`result_sizes` bound what pictures and results may cost.
"""
