"""What delegates would take of a model, in numbers and drawn."""
