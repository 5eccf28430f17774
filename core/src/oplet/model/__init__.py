"""A model file as a whole: opened, read, attached files, and which of its subgraphs can run. `files` maps bytes, `verify` checks the rules of
the format, `builders` make models in memory, and `save` writes them.
"""
