"""The overridden operators, one module each, named like the operator. A module binds nodes to kernels of the other rooms and
defines its `REGISTRATION`.
"""
