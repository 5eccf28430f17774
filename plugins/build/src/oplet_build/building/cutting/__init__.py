"""Extraction of kernels, and of the core, from installed packages: dependency analysis, tree shaking, rewriting of imports.

Modules here read source code and never run it.
"""
