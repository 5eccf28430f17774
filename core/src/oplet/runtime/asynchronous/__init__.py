"""Asynchronous execution of a fully delegated subgraph on buffers of the application. Modules here connect an interpreter with
one delegate's `AsyncKernel`.
"""
