"""The runtime: the interpreter and its signature runners, subgraphs as data, and how these are loaded and resolved to kernels. What acts on
subgraphs comes into one of the rooms, each of which imports only those below it: memory, threads, describe, execution, then
delegation, asynchronous and calling.
"""
