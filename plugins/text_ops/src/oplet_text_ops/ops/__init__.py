"""The operators, one module each, with the checks of its node and `REGISTRATION`. Code that they share is in the packages beside
this one.
"""
