"""Model files: opening, reading constants and metadata, external files, and which subgraphs can run.

`files` maps and replaces files, `verify` checks the rules of the format, `builders` make models in memory, and `save` writes
them.
"""
