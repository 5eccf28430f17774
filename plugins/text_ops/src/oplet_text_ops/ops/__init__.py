"""The operators, one module for each. A module has the checks of its node and `REGISTRATION`; what they share lies beside this room."""
