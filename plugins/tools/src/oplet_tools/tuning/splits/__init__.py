"""Ways with several engines in one model: `proposals` finds those that are worth measuring, from the times of nodes in `node_times`.

`stopwatch` times calls, as good as without what other processes take of the cores.
"""
