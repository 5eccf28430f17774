"""Code emitted as LLVM IR instead of compiled from Python; imported only when a kernel is compiled.

Kernels refer to these functions by name (`compiling.lazy.emitted`), so that a kernel can be loaded without numba.
"""
