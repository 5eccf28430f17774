"""The doors of the server, over HTTP and gRPC, and the bounds that both keep. What comes in is read into a request of the runtime, or
refused with one sentence.
"""
