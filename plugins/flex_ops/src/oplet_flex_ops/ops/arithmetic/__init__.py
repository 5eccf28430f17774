"""Ordinary operators in the types that .tflite has no builtin for: double, half and bfloat16, complex, unsigned. See `numerics.operator`.

Small operators share a module by kind; each is a constant there, named like the operator.
"""
