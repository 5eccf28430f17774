"""Operators from third-party libraries, adapted to oplet's registrations.

`entry` finds them, `kernel` and `node` run them, `loading` is what users call.
"""
