"""The part of the tools that is shipped in programs built by `oplet build --with-core`: their table of contents and their command
line.

Modules here are in every such program, so they must be small and import little.
"""
