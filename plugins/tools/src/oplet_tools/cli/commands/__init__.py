"""The commands of `oplet`, one module each, of the same name. A module declares the command's options, calls `oplet_tools`, and
prints.
"""
