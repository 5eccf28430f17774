"""Operators on sparse tensors: index vectors, values and a shape. Those that fold rows chosen by numbers are here too."""
