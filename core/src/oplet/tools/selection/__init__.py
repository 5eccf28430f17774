"""Which ops models need, the resolver that registers just these, and the lock file that holds them."""
