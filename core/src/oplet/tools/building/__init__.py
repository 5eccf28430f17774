"""Wheels and programs that hold just what models need."""
