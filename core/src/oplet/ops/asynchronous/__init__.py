"""Interface of asynchronous kernels, which work on buffers that the application registered.

The runner that calls them is in `oplet.runtime.asynchronous`.
"""
