"""Batched matrix products of BATCH_MATMUL, and products of +1 and -1 in words of bits. Right matrices of floats are packed tile by tile;
integers are summed and rescaled one by one.
"""
