"""Running a fully delegated subgraph asynchronously, on buffers of the application. What comes in stands between an interpreter and one
delegate's `AsyncKernel`.
"""
