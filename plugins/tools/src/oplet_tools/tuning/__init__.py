"""Autotuning: finds which of the installed kernels and delegates run a model fastest, and how far engines' results differ.

`candidates` lists the ways of running a model, `trials` measures them, `choice` takes the fastest that is accurate enough, and
`choice_cache` stores the choice in a file. `differences`, `tolerances` and `sensitivity` decide whether two results are the same, for
`oplet compare` as well; `node_comparison` compares two interpreters node by node.
"""
