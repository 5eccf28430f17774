"""From tables to the bytes of a file. What comes in decides layout, packing and what lies outside of the FlatBuffer."""
