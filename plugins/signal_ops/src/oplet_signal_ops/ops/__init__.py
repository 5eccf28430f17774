"""One module per operator, each with its `REGISTRATION`."""
