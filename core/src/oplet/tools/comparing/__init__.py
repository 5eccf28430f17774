"""A model run in two ways, and how far apart the answers are. What comes in supplies a side, walks the nodes, or judges a difference."""
