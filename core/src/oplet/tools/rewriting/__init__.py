"""Models read, changed and written: lowest versions, stripped, another batch size."""
