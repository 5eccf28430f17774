"""Composites that have a compiled kernel. A module each, named like the composite without its dialect, defines its `REGISTRATION`."""
