"""Everything between a model's file and the values of its tensors: the interpreter, its signatures, subgraphs as data, and how those are
loaded and resolved. What works on subgraphs comes into one of the rooms, each of which knows only those below it: memory, threads,
describe, execution, then delegation and asynchronous.
"""
