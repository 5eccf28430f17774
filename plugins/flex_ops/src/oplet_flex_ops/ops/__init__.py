"""The operators by family. Each operator is one module, named like the operator in snake case, with its `REGISTRATION`."""
