"""Builders of models: tensors, nodes, subgraphs and signatures, each checked when it is added. Modules here make tables and constants, and
write no file.
"""
