"""What a program made by `oplet build --with-core` carries of the tools: its table of contents and its command line. What comes in is shipped
in every such program, so it is little and imports little.
"""
