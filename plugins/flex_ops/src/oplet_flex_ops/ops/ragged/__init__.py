"""Operators on ragged tensors: values and the splits between their rows, level by level. Dense and sparse forms of them are here too."""
