"""odml.rms_norm: x / sqrt(mean(x ** 2) + epsilon) * weight along the last dimension; litert-torch writes it for every RMSNorm.

    x        (..., size)
    weight   (size,)
    output   as x

Attribute: `epsilon`. A factor that litert-torch's RMSNorm(with_scale=True) has is a constant of the decomposition, which then runs.

Numerics: PyTorch, as rms_norm_with_hlfb of litert_torch/generative/layers/normalization.py calls it.
"""

from __future__ import annotations

from functools import partial

from oplet import BuiltinOperator, Context, Node, Registration, TensorType, decline
from oplet.kernels.arrays import Thunk
from oplet.schema.stablehlo_options import StableHLOCompositeOptions
from oplet_builtin_ops.layers.attributes import Attributes, ensure_single
from oplet_builtin_ops.layers.normalization import normalized_rows
from oplet_builtin_ops.layers.program import run_program


def prepare(context: Context, node: Node) -> None:
    attributes = Attributes(node, "epsilon")
    node.prepared = attributes.number("epsilon", least=0)
    ensure_single(node, 2)
    x, weight = node.inputs
    if x.ndim < 1 or weight.shape != x.shape[-1:]:
        decline(f"{weight} has not one weight for each value of a row of {x}.")
    if _has_factor(context, node):
        decline("its decomposition multiplies by a constant of its own.")
    node.in_place = [x]
    context.resize_tensor(node.outputs[0], x.shape)
    context.add_temporary(node, (*x.shape[:-1], 1))


def _has_factor(context: Context, node: Node) -> bool:
    """Return whether the decomposition multiplies by a constant, or by a value computed from constants only."""
    index = node.options(StableHLOCompositeOptions).decomposition_subgraph_index
    if index < 0:
        return False
    made: set[object] = set()
    for each in context.callee(index).nodes:
        known = [tensor is None or tensor.is_constant or tensor in made for tensor in each.inputs]
        if all(known):
            made.update(each.outputs)
        elif any(known) and each.op in (BuiltinOperator.MUL, BuiltinOperator.DIV):
            return True
    return False


def bind(context: Context, node: Node) -> Thunk:
    x, weight, y = node.inputs[0].data, node.inputs[1].data, node.outputs[0].data
    if not y.size:
        return lambda: None
    rows, result, work = (array.reshape(-1, array.shape[-1]) for array in (x, y, node.temporaries[0].data))
    return run_program(partial(normalized_rows, rows, result, work, node.prepared, weight))


REGISTRATION = Registration(
    prepare=prepare,
    bind=bind,
    pure=True,
    types=(TensorType.FLOAT32,),
    differences="equals PyTorch to the last few bits; LiteRT runs the decomposition",
)
