"""`oplet explore`: a model's graph as plain data, with who serves each node and what it costs, and as a page or a file for other viewers. What
comes in may let delegates claim nodes and measure times. It prints nothing.
"""
