"""Commands that this package adds to `oplet`."""
