"""Execution of a subgraph: its executor, the context of its kernels, and the steps: prepare, fold, bind, invoke. Modules here act
on `runtime.subgraph`, and know nothing of delegates, files or signatures.
"""
