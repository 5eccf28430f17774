"""Ops on TensorLists, with the same error cases as tensorflow/core/kernels/list_kernels.{h,cc}.

Small operators share a module: those that make lists, those on items, on ends, on sizes. See `oplet_flex_ops.lists` for the lists.
"""
