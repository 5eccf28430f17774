"""Registrations of kernels, and the choice of the one that serves a node.

Modules here are registrations, the resolvers that hold them, the limits that they declare, and the order in which kernels are
tried.
"""
