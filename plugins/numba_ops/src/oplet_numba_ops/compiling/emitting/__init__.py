"""Code emitted as LLVM IR instead of compiled from Python; imported only when a kernel is compiled.

Kernels refer to this code by `compiling.lazy.emitted`.
"""
