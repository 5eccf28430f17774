"""TensorLists, TensorFlow's lists of tensors. They are Python values in VARIANT tensors, immutable as those are.

persistent      lists that are values: a changed one leaves the one that it was made from as it is, without a copy
partial_shapes  shapes of which dimensions, or all of them, are unknown
tensor_list     the list with its element type, element shape and the most elements that it takes
nodes           what the operators' nodes share: reading lists and shapes, giving outputs
"""
