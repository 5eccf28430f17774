"""Installed packages that bring operators and delegates: found, asked, merged into one resolver, and named in errors. What comes in may read
package metadata and must not load a model.
"""
