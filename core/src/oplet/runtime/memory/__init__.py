"""The memory of tensors: requests, the plan of an arena, arrays, the account of what is held, and the values that go in and out.
What comes in knows of tensors and subgraphs as data, and of nothing that runs.
"""
