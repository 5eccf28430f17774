"""Extraction of kernels, and of the core, from installed packages: dependency analysis, tree shaking, rewriting of imports. What comes in
reads source code and never runs it.
"""
