"""The overridden operators, one module each."""
