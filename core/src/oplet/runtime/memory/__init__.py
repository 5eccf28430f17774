"""The memory of tensors: requests, the plan of an arena, arrays, the account of allocated bytes, and the values that go in and
out. Modules here use tensors and subgraphs as data, and call nothing that runs nodes.
"""
