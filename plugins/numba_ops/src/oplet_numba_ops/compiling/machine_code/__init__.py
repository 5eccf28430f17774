"""Machine code of kernels: as an image that needs no linker, in memory, and on disk. Nothing here imports numba."""
