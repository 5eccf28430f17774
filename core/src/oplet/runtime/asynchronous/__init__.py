"""Asynchronous execution of a fully delegated subgraph on buffers of the application. What comes in stands between an interpreter and one
delegate's `AsyncKernel`.
"""
