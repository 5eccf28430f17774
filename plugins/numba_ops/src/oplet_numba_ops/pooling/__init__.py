"""MAX_POOL_2D and AVERAGE_POOL_2D. `pools` decides and binds, `windows` computes."""
