"""Files: memory mapping, safe paths of external files, and atomic replacement.

Modules here use paths and bytes; only `external` uses tables, those of external buffers.
"""
