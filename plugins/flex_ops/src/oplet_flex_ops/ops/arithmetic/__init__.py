"""Arithmetic ops in types that .tflite has no builtin for: double, half, bfloat16, complex, unsigned. See `numerics.operator`.

Small operators share a module by kind; each is a constant there, named like the operator.
"""
