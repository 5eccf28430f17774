"""`oplet explore`: a model's graph as plain data, with who serves each node and what it costs, and as a page or a file for other
viewers.

Modules here may let delegates claim nodes and measure times; they print nothing.
"""
