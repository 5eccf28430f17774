"""The makers, a module for each source; they need the converters, which the tests do not.

Each maker has `models()`: pairs of a name and a function that makes the case of that name.
"""
