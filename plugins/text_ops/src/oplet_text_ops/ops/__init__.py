"""The operators, one module each, with the checks of its node and `REGISTRATION`."""
