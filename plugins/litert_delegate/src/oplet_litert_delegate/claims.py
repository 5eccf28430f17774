"""Which nodes LiteRT may have, and why not the others."""

from __future__ import annotations

from collections.abc import Collection

from oplet import BuiltinOperator, Node, Tensor, TensorType
from oplet_litert_delegate.served import CUSTOM_OPS, serves

__all__ = ["refuses", "unpacks_constant"]

#: Types that both sides hold in memory in the same way.
_PLAIN = frozenset(
    {
        TensorType.BOOL, TensorType.COMPLEX64, TensorType.COMPLEX128, TensorType.FLOAT16, TensorType.FLOAT32, TensorType.FLOAT64,
        TensorType.INT8, TensorType.INT16, TensorType.INT32, TensorType.INT64,
        TensorType.UINT8, TensorType.UINT16, TensorType.UINT32, TensorType.UINT64,
    }
)  # fmt: skip
_PACKED = frozenset({TensorType.INT2, TensorType.INT4, TensorType.UINT4})

#: Where LiteRT takes weights with a scale for each channel; elsewhere it does not look, and aborts or computes with none.
_PER_CHANNEL = frozenset(
    {
        BuiltinOperator.BATCH_MATMUL, BuiltinOperator.CONV_2D, BuiltinOperator.DEPTHWISE_CONV_2D, BuiltinOperator.DEQUANTIZE,
        BuiltinOperator.EMBEDDING_LOOKUP, BuiltinOperator.FULLY_CONNECTED, BuiltinOperator.TRANSPOSE_CONV,
        BuiltinOperator.UNIDIRECTIONAL_SEQUENCE_LSTM,
    }
)  # fmt: skip

_COMPARES = frozenset(
    {
        BuiltinOperator.EQUAL, BuiltinOperator.NOT_EQUAL, BuiltinOperator.GREATER, BuiltinOperator.GREATER_EQUAL,
        BuiltinOperator.LESS, BuiltinOperator.LESS_EQUAL,
    }
)  # fmt: skip

_CALLS = "it runs other subgraphs, whose nodes are claimed one by one"
_STATE = "it has a state, which oplet keeps"
_STAYS = {
    BuiltinOperator.IF: _CALLS,
    BuiltinOperator.WHILE: _CALLS,
    BuiltinOperator.CALL: _CALLS,
    BuiltinOperator.CALL_ONCE: _CALLS,
    BuiltinOperator.STABLEHLO_WHILE: _CALLS,
    BuiltinOperator.STABLEHLO_CASE: _CALLS,
    BuiltinOperator.STABLEHLO_COMPOSITE: _CALLS,
    BuiltinOperator.STABLEHLO_REDUCE: _CALLS,
    BuiltinOperator.STABLEHLO_REDUCE_WINDOW: _CALLS,
    BuiltinOperator.STABLEHLO_SCATTER: _CALLS,
    BuiltinOperator.STABLEHLO_SORT: _CALLS,
    BuiltinOperator.BROADCAST_ARGS: "LiteRT ends the process where the shapes do not fit",
    BuiltinOperator.RANDOM_UNIFORM: _STATE,
    BuiltinOperator.RANDOM_STANDARD_NORMAL: _STATE,
    BuiltinOperator.MULTINOMIAL: _STATE,
    BuiltinOperator.STABLEHLO_RNG_BIT_GENERATOR: _STATE,
}


def unpacks_constant(node: Node) -> bool:
    """Whether it only widens a constant of the file (float16 weights, sparse weights).

    Engines like to do this themselves, and keep the constant as it is.
    """
    return (
        node.op in (BuiltinOperator.DEQUANTIZE, BuiltinOperator.DENSIFY)
        and node.has_input(0)
        and node.inputs[0].is_constant
        and len(node.outputs) == 1
    )


def refuses(node: Node, own: Collection[Tensor]) -> str:
    """Why LiteRT does not get the node; "" if it may.

    The node was prepared by its own kernel before, which checked it.

    Args:
        own: the variables that one node alone uses.
    """
    if node.registration is None:
        return "no kernel is there to check it before LiteRT sees it"
    if node.op in _STAYS:
        return _STAYS[node.op]
    if node.op is BuiltinOperator.CUSTOM:
        if node.op_name not in CUSTOM_OPS or node.version != 1:
            return f"LiteRT has no custom op {node.op_name} of version {node.version}"
    elif not serves(node.op, node.version):
        return f"this LiteRT has no {node.op_name} of version {node.version}"
    for tensor in (*node.inputs, *node.outputs, *node.intermediates):
        if tensor is not None and (why := _refuses(tensor, own)):
            return why
        if tensor is not None and tensor.quantization is not None and tensor.quantization.per_channel:
            if node.op not in _PER_CHANNEL or not tensor.is_constant:
                return f"{tensor} has several scales, and LiteRT does not look whether it can do with them"
    if node.op in _COMPARES and any(t.type in (TensorType.INT8, TensorType.UINT8) and not 0 < t.scale < 1 for t in node.inputs):
        return "LiteRT ends the process where a scale is missing, or not below 1"
    if node.op is BuiltinOperator.REVERSE_SEQUENCE and not node.inputs[1].is_constant:
        return "LiteRT writes where it must not if a length is negative, and only the running model knows"
    if node.op is BuiltinOperator.DEPTHWISE_CONV_2D and not node.has_input(2):
        return "LiteRT ends the process where the bias is left out"
    if any(tensor.is_variable for tensor in node.outputs):
        return _STATE
    if not node.outputs:
        return "nothing comes out of it"
    if all(tensor.is_constant for tensor in node.outputs) and not unpacks_constant(node):
        return "its result is known before the model runs"
    return ""


def _refuses(tensor: Tensor, own: Collection[Tensor]) -> str:
    if tensor.is_variable and tensor not in own:
        return f"{tensor} is a state that others use too"
    if not tensor.size:
        return f"{tensor} is empty, and some of LiteRT's kernels end the process then"
    if tensor.is_dynamic:
        return f"the shape of {tensor} is known only while running"
    if tensor.type in _PLAIN or (tensor.type in _PACKED and tensor.is_constant):
        return ""
    return f"values of the type {tensor.type.name} are not handed over"
