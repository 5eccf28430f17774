"""Which registration serves an operator in a version. Registrations, the resolvers that hold them, the limits that they declare, and the order
in which providers are asked come in.
"""
