"""Maintenance of this repository. Run the modules from its root: python -m scripts.licences."""
