"""Running a subgraph: its executor, the context of its kernels, and the steps by which it prepares, folds, binds and invokes. What comes in
acts on `runtime.subgraph`; whatever knows of delegates, files or signatures stays out.
"""
