"""Ops on lookup tables: those that create tables, and those that read and change them. See `oplet_flex_ops.tables`."""
