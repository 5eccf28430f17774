"""Ops that create, move, select and count elements of any type. Small ones share a module by kind."""
