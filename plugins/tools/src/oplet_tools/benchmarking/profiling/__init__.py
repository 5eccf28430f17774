"""Measurements behind profiles: robust statistics, nodes' shapes and work, the machine's peaks, and the comparison with an
earlier profile.

Modules here measure and compute; other modules show the results.
"""
