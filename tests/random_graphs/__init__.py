"""Random graphs of many nodes, with control flow, variables and signatures, in all states of two engines: python -m tests.random_graphs COUNT."""
