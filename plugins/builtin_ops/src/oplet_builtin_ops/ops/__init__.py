"""One module an operator, named like it in lower case."""
