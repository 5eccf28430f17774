"""What runs a CompiledModel: the memory behind buffers, the runs that are bound to it, signatures, and the choice of delegates by hardware.

Each module imports only those before it: memory, packing, signatures, buffer_runner, accelerators, loaded.
"""
