"""Values of tensors: from JSON lists, bytes and gRPC's fields to arrays of stated shapes, and back. Large texts are gone through in slices, so
that other threads get their turns.
"""
