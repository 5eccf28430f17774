"""The build of the libraries of kernels: from Python functions by numba to LLVM's IR, by LLVM to machine code for each level of
processors, and by zig's linker to one shared library per level and platform. No wheel holds it; nothing of it is imported when a
model runs.
"""
