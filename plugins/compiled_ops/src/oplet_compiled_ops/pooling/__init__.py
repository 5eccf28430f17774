"""MAX_POOL_2D and AVERAGE_POOL_2D. `pools` decides which nodes compiled loops serve and divides their work, `windows` has the
kernels.
"""
