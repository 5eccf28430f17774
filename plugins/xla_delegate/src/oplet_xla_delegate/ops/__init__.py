"""Translators of operators, a module for each family."""
