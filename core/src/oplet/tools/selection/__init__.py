"""Which ops models need, the resolver that registers just these, and the lock file that holds them. What comes in reads models and plugins,
or writes one of these files.
"""
