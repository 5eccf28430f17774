"""Machine code of kernels, compiled when the package is built: the levels of processors, the shared library that is opened for this
one, and its functions called with raw addresses. Nothing here knows an operator or imports numba.
"""
