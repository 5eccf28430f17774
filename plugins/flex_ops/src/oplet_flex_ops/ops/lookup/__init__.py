"""Operators on lookup tables: those that give tables, and those that read and change them. See `oplet_flex_ops.tables`."""
