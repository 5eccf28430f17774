"""Writing of models: from tables to the bytes of a file.

Modules here decide the layout, the packing of values, and what is stored outside of the FlatBuffer.
"""
