"""Plugins: installed packages with operators and delegates. Discovery, selection, merging into one resolver, advice in error
messages.

Modules here may read package metadata, and load no model.
"""
