"""The operators, one module each, named like the operator in lower case; families lie in other rooms (`oplet_builtin_ops.FAMILIES`)."""
