"""Loading of kernels' machine code: images that need no linker, executable memory, disk cache. Nothing here imports numba."""
