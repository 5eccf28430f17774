"""Kernels that go through arrays value by value, of one operand or two, and means over neighbouring axes. What comes in is told by how it
walks, not by what it computes.
"""
