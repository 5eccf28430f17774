"""MAX_POOL_2D and AVERAGE_POOL_2D. `pools` plans the nodes, `windows` has the kernels."""
