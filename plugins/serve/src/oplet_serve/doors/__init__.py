"""The server's transports, REST and gRPC, and the limits that both enforce. They parse a request for the runtime, or refuse it
with a one-sentence error.
"""
