"""Models made in Python: tensors, nodes, subgraphs and signatures, each checked where it is added. What comes in makes tables and constants,
and writes no file.
"""
