"""Code emitted as LLVM IR instead of compiled from Python; imported only when a kernel is compiled.

Kernels name what they call of it by `compiling.lazy.emitted`.
"""
