"""Batched matrix products of BATCH_MATMUL: of floats, whose right matrices are packed tile by tile, and of integers."""
