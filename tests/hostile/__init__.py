"""Hostile input: what every row of the list of bad inputs must be answered with."""
