"""Random numbers with given seeds, equal to TensorFlow's CPU kernels. See `oplet_flex_ops.numerics.philox`.

Stateless operators take their seed or key as an input; those with a state keep a position that advances from invoke to invoke.
"""
