"""Asynchronous runs on buffers of the application: the runner of a signature, its tasks, and the interface of kernels that delegates bring.

`async_runner` is for programs, `kernel` and `threaded_kernel` are for delegates; `oplet` has the names of both.
"""
