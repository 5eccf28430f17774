"""STABLEHLO_BROADCAST_IN_DIM: a tensor broadcast to the output's shape, with its axes at the positions in the options."""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, ensure
from oplet.kernels.arrays import Thunk, copier
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet.schema.stablehlo_options import StablehloBroadcastInDimOptions
from oplet_builtin_ops.stablehlo import VALUES, attribute, declared_shape, ensure_axes, ensure_values


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1)
    source, output = node.inputs[0], node.outputs[0]
    ensure_values(source)
    ensure_same_type(source, output)
    shape = declared_shape(output)
    axes = attribute(node.options(StablehloBroadcastInDimOptions).broadcast_dimensions)
    ensure(len(axes) == source.ndim, f"broadcast_dimensions {axes} must name one axis for each of {source}.")
    ensure_axes("broadcast_dimensions", axes, len(shape))
    ensure(
        all(dim in (1, shape[axis]) for dim, axis in zip(source.shape, axes)),
        f"{source} cannot be broadcast to {list(shape)} along {axes}: a dimension must be 1 or stay as it is.",
    )
    node.prepared = axes
    context.resize_tensor(output, shape)


def bind(context: Context, node: Node) -> Thunk:
    source, output, axes = node.inputs[0].data, node.outputs[0].data, node.prepared
    aligned = source.transpose(np.argsort(axes)) if axes else source
    dims = dict(zip(axes, source.shape))
    return copier(output, aligned.reshape([dims.get(axis, 1) for axis in range(output.ndim)]))


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=VALUES)
