"""Extraction of kernels, and of the core, from installed packages: dependency analysis, rewriting of imports.

Modules here read source code and never run it.
"""
