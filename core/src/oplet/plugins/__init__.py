"""Plugins, which are installed packages with operators and delegates: discovery, selection, merging into one resolver, advice in errors.
Modules here may read package metadata, and load no model.
"""
