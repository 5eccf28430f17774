"""Candidates with several engines in one model, each of which runs some of the nodes.

`node_times` measures the time of each node, `proposals` finds from these times the candidates that are worth measuring, and
`stopwatch` times calls without most of the time in which other processes had the cores.
"""
