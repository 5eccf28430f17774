"""A model with and without a delegate: how far apart the answers are."""
