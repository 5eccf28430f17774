"""Output files: wheels, zip archives (.pyz), and the modules generated for them. What comes in turns cut source code into files."""
