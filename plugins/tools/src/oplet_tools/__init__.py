"""The functions behind the commands, usable from Python. Each room holds what one command, or a few related ones, needs; nothing here prints."""
