"""One module a command, named like it. A module declares the command's options, calls `oplet.tools`, and prints."""
