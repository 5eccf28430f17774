"""The memory of tensors: requests, the plan of an arena, arrays, the account of allocated bytes, and the values that go in and out.
What comes in knows tensors and subgraphs as data, and nothing that runs.
"""
