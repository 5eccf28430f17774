"""Kernels that run asynchronously, on buffers that the application registered. Modules here are the contract between such a kernel and the
application; the runner is in `oplet.runtime.asynchronous`.
"""
