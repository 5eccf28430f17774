"""From a function of Python to machine code that is called with addresses: compilation, caches, arguments, vector instructions. What comes in
knows no operator.
"""
