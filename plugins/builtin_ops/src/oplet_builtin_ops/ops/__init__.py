"""The operators, one module each, named like the operator in lower case."""
