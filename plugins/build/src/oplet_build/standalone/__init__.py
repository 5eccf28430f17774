"""The part of the tools that is shipped in programs built by `oplet build --with-core`: their table of contents and their command line. What
comes in is in every such program, so it must be small and import little.
"""
