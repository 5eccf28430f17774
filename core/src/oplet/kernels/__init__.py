"""The kit for authors of operators: functions that kernels of many operators share.

A function belongs here when it applies to tensors, nodes or arrays in general and at least two packages use it; code of one operator
lives in the operator's package. Every module imports only `oplet.ops`, `oplet.schema`, `oplet.errors` and its neighbours, so that a model
loads only modules that its kernels use.

    arrays          the types Array, Shape and Thunk; copies
    operands        checks of a node's operands: their number, types and shapes
    axes            normalization of axes; integers that are the values of tensors
    shapes          output shapes known in prepare or only at run time; outputs in place of inputs
    broadcasting    the shape to which two operands broadcast
    windows         windows along an axis and over maps: SAME, VALID, strides, dilations
    activations     fused activations: which are clamps, bounds on floats and on quantized outputs
    fixed_point     quantized multipliers, and the roundings of LiteRT's integer kernels
    requantization  from accumulators to quantized outputs, as each of LiteRT's roundings defines it
    limits          loops over data that look at the clock, charged lists of numbers, memory that outlives a node's run
    strings         strings that kernels make, charged before they are made; regular expressions
    options         custom options that are FlexBuffers maps, or NodeDefs of TensorFlow
"""
