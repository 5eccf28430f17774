"""Code that is emitted as LLVM instructions rather than written in Python; imported only where a kernel is compiled.

Kernels name what they call of it by `compiling.lazy.emitted`.
"""
