"""What the commands do, usable from Python. A room holds what one command, or a few of one kind, needs; nothing here prints."""
