"""Execution of a subgraph: its executor, the context of its kernels, and the steps: prepare, fold, bind, invoke. What comes in acts on
`runtime.subgraph`; what knows of delegates, files or signatures stays out.
"""
