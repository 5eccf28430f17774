"""STABLEHLO_SCATTER: windows of updates combined into a tensor, at places given by index vectors.

Updates that land outside the tensor are left out. The body may be nothing (the update replaces the value), one sum, product,
maximum or minimum. Numerics: tflite/kernels/stablehlo_scatter.cc
"""

from __future__ import annotations

from math import prod

import numpy as np

from oplet import BuiltinOperator, Context, Node, Registration, ensure, ensure_type
from oplet.schema.stablehlo_options import StablehloScatterOptions
from oplet_builtin_ops.control.regions import body_function
from oplet_builtin_ops.elementwise.stablehlo_elementwise import ARITHMETIC, quietly
from oplet_builtin_ops.shaping.index_vectors import ensure_index_vectors, index_vectors
from oplet_builtin_ops.shaping.shapes import Thunk, ensure_operands, ensure_same_type
from oplet_builtin_ops.stablehlo import attribute, ensure_axes

_OPS = (
    BuiltinOperator.STABLEHLO_ADD,
    BuiltinOperator.STABLEHLO_MULTIPLY,
    BuiltinOperator.STABLEHLO_MAXIMUM,
    BuiltinOperator.STABLEHLO_MINIMUM,
)


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 3)
    source, indices, updates = node.inputs
    output = node.outputs[0]
    ensure_type(source, *ARITHMETIC)
    ensure_same_type(source, updates)
    ensure_same_type(source, output)
    options = node.options(StablehloScatterOptions)
    window, inserted = attribute(options.update_window_dims), attribute(options.inserted_window_dims)
    mapped = attribute(options.scatter_dims_to_operand_dims)
    ensure_axes("update_window_dims", window, updates.ndim)
    ensure_axes("inserted_window_dims", inserted, source.ndim)
    ensure_axes("scatter_dims_to_operand_dims", mapped, source.ndim)
    batch = ensure_index_vectors(indices, options.index_vector_dim, len(mapped))
    scattered = [axis for axis in range(updates.ndim) if axis not in window]
    ensure(
        tuple(updates.shape[axis] for axis in scattered) == batch,
        f"the axes {scattered} of {updates} must have the sizes {list(batch)}, as {indices} has.",
    )
    ensure(
        len(window) + len(inserted) == source.ndim,
        f"update_window_dims {window} and inserted_window_dims {inserted} must cover the {source.ndim} axes of {source}.",
    )
    node.prepared = body_function(context, options.update_computation_subgraph_index, _OPS), window, inserted, mapped
    context.resize_tensor(output, source.shape)


def bind(context: Context, node: Node) -> Thunk:
    function, window, inserted, mapped = node.prepared
    source, indices, updates = (tensor.data for tensor in node.inputs)
    output = node.outputs[0].data
    shape = source.shape
    strides = [prod(shape[axis + 1 :]) for axis in range(source.ndim)]
    vectors = index_vectors(indices, node.options(StablehloScatterOptions).index_vector_dim)
    scattered = [axis for axis in range(updates.ndim) if axis not in window]
    covered = [axis for axis in range(source.ndim) if axis not in inserted]
    flat, values = output.reshape(-1), updates.reshape(-1)

    def along(axis: int, position: int) -> np.ndarray:
        """How far each update is from the first of its window, along an axis of the source."""
        steps = np.arange(updates.shape[position])
        return steps.reshape([-1 if i == position else 1 for i in range(updates.ndim)])

    offsets = {axis: along(axis, position) for axis, position in zip(covered, window)}

    def scatter() -> None:
        output[...] = source
        places = np.zeros(updates.shape, np.int64)
        inside = np.ones(updates.shape, np.bool_)
        begins = {axis: vectors[..., number].astype(np.int64) for number, axis in enumerate(mapped)}
        for axis in range(source.ndim):
            place = np.zeros((1,) * updates.ndim, np.int64) + offsets.get(axis, 0)
            if axis in begins:
                aligned = [updates.shape[i] if i in scattered else 1 for i in range(updates.ndim)]
                place = place + begins[axis].reshape(aligned)
            inside &= (place >= 0) & (place < shape[axis])
            places += place * strides[axis]
        chosen, given = places[inside], values[inside.reshape(-1)]
        # Both keep the order of the updates, as LiteRT does: of several that replace one value, the last one stays.
        if function is None:
            flat[chosen] = given
        else:
            function.at(flat, chosen, given)

    return quietly(scatter)


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=ARITHMETIC)
