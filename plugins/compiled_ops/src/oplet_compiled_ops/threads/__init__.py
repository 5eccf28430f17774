"""Worker threads that share a kernel's work: division into parts, atomics, the thread pool. It knows kernels (compiled
functions), but no operators.
"""
