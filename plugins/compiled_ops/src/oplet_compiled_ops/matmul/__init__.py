"""Batched matrix products of BATCH_MATMUL. Right matrices of floats are packed tile by tile; integers are summed and rescaled one by one."""
