"""Kernels that run asynchronously, on buffers that the application registered. What comes in is the contract between such a kernel and the
application; the runner lives in `oplet.runtime.asynchronous`.
"""
