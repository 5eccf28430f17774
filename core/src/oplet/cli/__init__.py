"""The command `oplet`: one thin file a command; what they do is in `oplet.tools`."""
