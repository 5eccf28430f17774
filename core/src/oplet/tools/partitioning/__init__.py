"""What delegates would take of a model, in numbers and drawn. What comes in claims nodes and runs none."""
