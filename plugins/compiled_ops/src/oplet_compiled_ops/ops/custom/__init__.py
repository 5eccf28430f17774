"""Custom operators that have a compiled kernel. A module each, named like the operator, defines its `REGISTRATION`."""
