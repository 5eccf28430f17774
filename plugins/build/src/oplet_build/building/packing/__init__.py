"""Writers of output files: wheels, zip archives (.pyz), and the modules generated for them.

Modules here turn cut source code into files.
"""
