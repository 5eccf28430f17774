"""Operators of somebody's library as registrations of oplet.

`entry` finds them, `kernel` and `node` run them, `loading` is what users call.
"""
