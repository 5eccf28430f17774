"""Decides which nodes LiteRT gets, and gives reasons for the others."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from itertools import pairwise

from ai_edge_litert.interpreter import Interpreter, OpResolverType

from oplet import BuiltinOperator, ModelBuilder, Node, Tensor, TensorType
from oplet_litert_delegate.composites import refuses_composite
from oplet_litert_delegate.dangers import dies_of

__all__ = ["refuses", "unpacks_constant"]

#: Custom ops that LiteRT's Python build brings, at version 1. A custom op that it lacks is found out only when a node is
#: prepared, and preparing one means running it on a node that fits: so these are written down.
CUSTOM_OPS = frozenset({"AudioSpectrogram", "Mfcc", "TFLite_Detection_PostProcess", "aeq.hadamard_rotation"})


@cache
def serves(op: BuiltinOperator, version: int) -> bool:
    """Return whether LiteRT has a kernel for a built-in operator in that version.

    LiteRT checks a model's operator codes when it opens it, so opening an empty model with this one shows it.
    """
    builder = ModelBuilder(minimum_runtime=False)
    builder.add_operator_code(op, version)
    graph = builder.add_subgraph()
    graph.set_inputs()
    graph.set_outputs()
    try:
        Interpreter(
            model_content=builder.to_bytes(),
            experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        )
    except ValueError:
        return False
    return True


#: Types that both sides hold in memory in the same way.
_PLAIN = frozenset(
    {
        TensorType.BOOL, TensorType.COMPLEX64, TensorType.COMPLEX128, TensorType.FLOAT16, TensorType.FLOAT32, TensorType.FLOAT64,
        TensorType.INT8, TensorType.INT16, TensorType.INT32, TensorType.INT64,
        TensorType.UINT8, TensorType.UINT16, TensorType.UINT32, TensorType.UINT64,
    }
)  # fmt: skip
_PACKED = frozenset({TensorType.INT2, TensorType.INT4, TensorType.UINT4})

#: The places of the biases of layers, which may be of INT32 beside data of INT16.
_BIASES = {BuiltinOperator.CONV_2D: 2, BuiltinOperator.DEPTHWISE_CONV_2D: 2, BuiltinOperator.TRANSPOSE_CONV: 3}
_CALLS = "it runs other subgraphs, whose nodes are claimed one by one"
_DECOMPOSED = "without XNNPACK its decomposition would run"
_STATE = "it has a state, which oplet keeps"
_STAYS = {
    BuiltinOperator.IF: _CALLS,
    BuiltinOperator.WHILE: _CALLS,
    BuiltinOperator.CALL: _CALLS,
    BuiltinOperator.CALL_ONCE: _CALLS,
    BuiltinOperator.STABLEHLO_WHILE: _CALLS,
    BuiltinOperator.STABLEHLO_CASE: _CALLS,
    BuiltinOperator.STABLEHLO_REDUCE: _CALLS,
    BuiltinOperator.STABLEHLO_REDUCE_WINDOW: _CALLS,
    BuiltinOperator.STABLEHLO_SCATTER: _CALLS,
    BuiltinOperator.STABLEHLO_SORT: _CALLS,
    BuiltinOperator.RANDOM_UNIFORM: _STATE,
    BuiltinOperator.RANDOM_STANDARD_NORMAL: _STATE,
    BuiltinOperator.MULTINOMIAL: _STATE,
    BuiltinOperator.STABLEHLO_RNG_BIT_GENERATOR: _STATE,
}


def unpacks_constant(node: Node) -> bool:
    """Return whether the node only expands a constant of the file: DEQUANTIZE of float16 or DENSIFY of sparse weights.

    Delegates prefer to expand such a constant themselves, keeping the compact form.
    """
    return (
        node.op in (BuiltinOperator.DEQUANTIZE, BuiltinOperator.DENSIFY)
        and node.has_input(0)
        and node.inputs[0].is_constant
        and len(node.outputs) == 1
    )


def refuses(node: Node, own: Collection[Tensor], *, xnnpack: bool = True) -> str:
    """Return why a node is not given to LiteRT; "" if it may be.

    The node must be prepared: its own kernel has checked it.

    Args:
        node: the node.
        own: the variable tensors that only one node uses; nodes with other variable tensors are not given to LiteRT.
        xnnpack: whether LiteRT may use XNNPACK.
    """
    if node.registration is None:
        return "no kernel is there to check it before LiteRT sees it"
    if node.op in _STAYS:
        return _STAYS[node.op]
    if node.op is BuiltinOperator.STABLEHLO_COMPOSITE and (why := refuses_composite(node) if xnnpack else _DECOMPOSED):
        return why
    if node.op is BuiltinOperator.CUSTOM:
        if node.op_name not in CUSTOM_OPS or node.version != 1:
            return f"LiteRT has no custom op {node.op_name} of version {node.version}"
    elif not serves(node.op, node.version):
        return f"this LiteRT has no {node.op_name} of version {node.version}"
    for tensor in (*node.inputs, *node.outputs, *node.intermediates):
        if tensor is not None and (why := _refuses(tensor, own)):
            return why
    if why := dies_of(node):
        return why
    if why := _beyond(node):
        return why
    if node.op is BuiltinOperator.REVERSE_V2 and not _neighbours(*node.inputs):
        return "LiteRT reverses only axes that are known to be neighbours, and sees while running whether they are"
    if any(tensor.is_variable for tensor in node.outputs):
        return _STATE
    if not node.outputs:
        return "nothing comes out of it"
    if all(tensor.is_constant for tensor in node.outputs) and not unpacks_constant(node):
        return "its result is known before the model runs"
    return ""


def _beyond(node: Node) -> str:
    """Return why LiteRT would refuse a node that oplet runs, or give it another value; "" if it would not."""
    kind = node.inputs[0].type if node.has_input(0) else None
    if node.op is BuiltinOperator.RFFT2D:
        lengths = node.inputs[1]
        if not lengths.is_constant or (lengths.data & (lengths.data - 1)).any():
            return "LiteRT transforms lengths that are powers of two alone"
    if node.op is BuiltinOperator.SQUARED_DIFFERENCE and kind is TensorType.INT16:
        return "LiteRT has no SQUARED_DIFFERENCE of INT16"
    place = _BIASES.get(node.op)
    if place is not None and node.outputs[0].type is TensorType.INT16 and node.has_input(place):
        said = getattr(node.raw_options, "quantized_bias_type", None)
        if node.inputs[place].type is TensorType.INT32 and said is not TensorType.INT32:
            return "LiteRT takes a bias of INT32 for one of INT64 unless the options say its type"
    return ""


def _neighbours(data: Tensor, axes: Tensor) -> bool:
    """Return whether REVERSE_V2's axes are adjacent; LiteRT rejects others only at invoke."""
    if axes.size < 2:
        return True
    if not axes.is_constant:
        return False
    in_order = sorted(axis % len(data.shape) for axis in axes.data.tolist())
    return all(right - left == 1 for left, right in pairwise(in_order))


def _refuses(tensor: Tensor, own: Collection[Tensor]) -> str:
    if tensor.is_variable and tensor not in own:
        return f"{tensor} is a state that others use too"
    if tensor.is_dynamic:
        return f"the shape of {tensor} is known only while running"
    if tensor.type in _PLAIN or (tensor.type in _PACKED and tensor.is_constant):
        return ""
    return f"values of the type {tensor.type.name} are not handed over"
