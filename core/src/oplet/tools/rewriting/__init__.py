"""Models read, changed and written: lowest versions, stripped, another batch size. What comes in turns one model into another."""
