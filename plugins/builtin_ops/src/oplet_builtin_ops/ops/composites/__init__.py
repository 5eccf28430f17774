"""Composites that converters write and that are computed as a whole, one module each."""
