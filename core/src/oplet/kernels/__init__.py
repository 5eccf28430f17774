"""The kit for authors of operators: what kernels of many operators share.

A function belongs here when it is true of tensors, nodes or arrays in general and at least two packages want it; what one operator does
lives in the operator's package. Every module imports only `oplet.ops`, `oplet.schema`, `oplet.errors` and its neighbours, so that a model
loads no more than its kernels use.

    arrays          the types Array, Shape and Thunk; copies
    operands        checks of a node's operands: their number, types, quantizations and shapes
    axes            axes counted from the front; integers that arrive in tensors
    shapes          outputs whose shapes are known in prepare, or only when the node runs; writing over inputs
    broadcasting    the shape to which two operands broadcast
    windows         windows along an axis and over maps: SAME, VALID, strides, dilations
    activations     fused activations: which are clamps, bounds on floats and on quantized outputs
    fixed_point     quantized multipliers, and the roundings of LiteRT's integer kernels
    requantization  from accumulators to quantized outputs, as each of LiteRT's roundings defines it
    options         custom options: FlexBuffers maps and structs of int32
"""
