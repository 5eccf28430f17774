"""Commands that this package adds to `oplet`. `chat` is imported when it is run, by the command's own package, oplet-tools."""
