"""Windows of MAX_POOL_2D and AVERAGE_POOL_2D. Here are the sources of kernels, which are declared in `ops.pooling`."""
