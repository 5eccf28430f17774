"""MAX_POOL_2D and AVERAGE_POOL_2D. `pools` decides which nodes are served and binds them, `windows` computes."""
