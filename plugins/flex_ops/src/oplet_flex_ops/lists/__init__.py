"""TensorLists, TensorFlow's lists of tensors. They are Python values in VARIANT tensors, immutable as those are.

persistent      immutable lists: a change returns a new version without copying, the old one stays valid
partial_shapes  shapes with unknown dimensions or rank
tensor_list     the list with its element type, element shape and maximal length
nodes           shared parts of the nodes: reading lists and shapes, writing outputs
"""
