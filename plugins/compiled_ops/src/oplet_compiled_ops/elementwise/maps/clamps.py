"""RELU and other clamps. A clamp is fused as activation into the layer that produces its input, if nothing else reads that
output.

On one thread numpy is as fast for float clamps, but its call would separate compiled neighbours, which are fused into one call
(`threads.joining`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oplet import Context, Node, NodeLimits, Registration, TensorType, decline, ensure, ensure_type
from oplet.kernels.operands import ensure_operands
from oplet.schema.enums import ActivationFunctionType, BuiltinOperator
from oplet.schema.options import AddOptions, Conv2DOptions, DepthwiseConv2DOptions, FullyConnectedOptions, MulOptions, SubOptions
from oplet_compiled_ops.elementwise.flat import plan_flat
from oplet_compiled_ops.elementwise.float_maps import CLAMP, CLAMP_OVER
from oplet_compiled_ops.elementwise.maps.tables import TABLED, plan_table
from oplet_compiled_ops.overriding import Bind, Thunk, is_compiled, override

__all__ = ["clamp_registration"]

#: The layers whose kernels clamp floats, with their options.
_LAYERS: dict[BuiltinOperator, type[Any]] = {
    BuiltinOperator.ADD: AddOptions,
    BuiltinOperator.CONV_2D: Conv2DOptions,
    BuiltinOperator.DEPTHWISE_CONV_2D: DepthwiseConv2DOptions,
    BuiltinOperator.FULLY_CONNECTED: FullyConnectedOptions,
    BuiltinOperator.MUL: MulOptions,
    BuiltinOperator.SUB: SubOptions,
}


def clamp_registration(
    builtin: Registration, low: float, high: float, activation: ActivationFunctionType = ActivationFunctionType.NONE
) -> Registration:
    """Build the registration of a clamp to [low, high].

    `activation` is the activation that does the same, as which the clamp is fused into the layer before it; NONE if there is
    none.
    """

    def plan(context: Context, node: Node) -> Bind:
        source, output = node.inputs[0], node.outputs[0]
        if source.type in TABLED:
            return plan_table(context, node)
        if not output.size:
            decline("there is nothing to compute.")
        node.in_place = [source]
        return plan_flat(context, CLAMP, (source, output), low, high, over=CLAMP_OVER)

    alone = override(builtin, plan, NodeLimits(inputs=[[TensorType.FLOAT32, *TABLED]]))
    if activation is ActivationFunctionType.NONE:
        return alone

    def prepare(context: Context, node: Node) -> None:
        if node.absorbed:
            _prepare_clamped(context, node, activation)
        elif alone.prepare is not None:
            alone.prepare(context, node)

    def bind(context: Context, node: Node) -> Thunk:
        if isinstance(node.prepared, Node):
            return _bind_clamped(context, node.prepared)
        return alone.bind(context, node)  # type: ignore[misc]

    return alone.__replace__(prepare=prepare, bind=bind, fuses=_layer_to_absorb)


def _layer_to_absorb(node: Node, makers: Sequence[Node]) -> Sequence[Node]:
    """Return, in a list, the layer among `makers` that a clamp can be fused with; an empty one if there is none.

    It is a layer of floats without activation that has a compiled kernel. `makers` are the nodes that produce the clamp's input
    and whose output nothing else reads.
    """
    return [maker for maker in makers if _clamps(maker) and maker.outputs[0].type is TensorType.FLOAT32]


def _clamps(maker: Node) -> bool:
    kind = _LAYERS.get(maker.op)
    options: Any = maker.raw_options
    plain = kind is not None and isinstance(options, kind) and options.fused_activation_function == ActivationFunctionType.NONE
    return plain and is_compiled(maker)


def _prepare_clamped(context: Context, node: Node, activation: ActivationFunctionType) -> None:
    """Prepare the layer that is fused with a clamp: with `activation` as its own, and writing the clamp's output."""
    ensure_operands(node, 1)
    [layer] = node.absorbed
    output = node.outputs[0]
    ensure_type(output, TensorType.FLOAT32)
    kernel = layer.registration
    ensure(kernel is not None and kernel.prepare is not None, "nothing serves the layer before it.")
    plain: Any = layer.raw_options
    options = object.__new__(type(plain))
    options.__dict__ = {**vars(plain), "fused_activation_function": activation}
    clamped = Node(layer.index, layer.op, layer.op_name, layer.version, layer.inputs, [output], options, registration=kernel)
    # What kernels keep of a layer's weights does not depend on its activation.
    clamped.shared, clamped.kernel_cache = layer.shared, layer.kernel_cache
    kernel.prepare(context, clamped)  # type: ignore[union-attr, misc]
    layer.kernel_cache = clamped.kernel_cache
    context.resize_tensor(layer.outputs[0], output.shape)  # it has no memory, but a shape
    node.temporaries, node.in_place, node.prepared, node.main = clamped.temporaries, clamped.in_place, clamped, layer


def _bind_clamped(context: Context, clamped: Node) -> Thunk:
    """Return the function that runs a layer that is fused with a clamp; `clamped` is the node that `_prepare_clamped` made."""
    kernel = clamped.registration
    ensure(kernel is not None and kernel.bind is not None, "nothing serves the layer before it.")
    thunk: Thunk = kernel.bind(context, clamped)  # type: ignore[union-attr, misc]
    return thunk
