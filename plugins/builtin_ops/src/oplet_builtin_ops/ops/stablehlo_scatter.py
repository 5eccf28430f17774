"""STABLEHLO_SCATTER: windows of updates combined with tensors, at positions given by index vectors.

Updates outside of the tensors are left out. A body that replaces the value, or of one sum, product, maximum, minimum, and, or is
recognised; any other pure one is run, for one update of each position after the other.

Numerics: tflite/kernels/stablehlo_scatter.cc
"""

from __future__ import annotations

from itertools import pairwise
from math import prod

import numpy as np

from oplet import Context, Node, Registration, charge, checkpoint, ensure
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.operands import ensure_operands, ensure_same_shape, ensure_same_type
from oplet.schema.stablehlo_options import StablehloScatterOptions
from oplet_builtin_ops.control.bodies import Body, prepare_body
from oplet_builtin_ops.control.regions import body_function, replaces
from oplet_builtin_ops.elementwise.stablehlo_elementwise import quietly
from oplet_builtin_ops.shaping.index_vectors import ensure_index_vectors, index_vectors
from oplet_builtin_ops.stablehlo import VALUES, attribute, ensure_axes, ensure_values

#: Bytes of scratch per value for the positions of updates.
_PLACE_BYTES = 48


def prepare(context: Context, node: Node) -> None:
    count = max(1, len(node.inputs) // 2)
    ensure_operands(node, 2 * count + 1, count)
    sources, indices, given = node.inputs[:count], node.inputs[count], node.inputs[count + 1 :]
    source, updates = sources[0], given[0]
    ensure_values(*sources)
    ensure_same_shape(*sources)
    ensure_same_shape(*given)
    for tensor, update, output in zip(sources, given, node.outputs):
        ensure_same_type(tensor, update)
        ensure_same_type(tensor, output)
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
    callee = context.callee(options.update_computation_subgraph_index)
    combine: np.ufunc | Body | None = None
    if count > 1 or not replaces(callee):
        combine = body_function(callee, source.type) if count == 1 else None
        if combine is None:
            combine = prepare_body(context, callee.index, (*sources, *given), node.outputs, min(updates.size, source.size))
    node.prepared = combine, window, inserted, mapped
    for output in node.outputs:
        context.resize_tensor(output, source.shape)


def bind(context: Context, node: Node) -> Thunk:
    combine, window, inserted, mapped = node.prepared
    count = len(node.outputs)
    arrays = [tensor.data for tensor in node.inputs]
    sources, indices, updates = arrays[:count], arrays[count], arrays[count + 1]
    outputs = [tensor.data for tensor in node.outputs]
    source = sources[0]
    shape = source.shape
    strides = [prod(shape[axis + 1 :]) for axis in range(source.ndim)]
    vectors = index_vectors(indices, node.options(StablehloScatterOptions).index_vector_dim)
    scattered = [axis for axis in range(updates.ndim) if axis not in window]
    covered = [axis for axis in range(source.ndim) if axis not in inserted]
    flats, values = [output.reshape(-1) for output in outputs], [array.reshape(-1) for array in arrays[count + 1 :]]

    def along(axis: int, position: int) -> np.ndarray:
        """Return each update's offset along one source axis from the first update of its window."""
        steps = np.arange(updates.shape[position])
        return steps.reshape([-1 if i == position else 1 for i in range(updates.ndim)])

    offsets = {axis: along(axis, position) for axis, position in zip(covered, window)}

    def scatter() -> None:
        charge(_PLACE_BYTES * updates.size + 8 * indices.size)
        for output, before in zip(outputs, sources):
            output[...] = before
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
        chosen = places[inside]
        given = [array[inside.reshape(-1)] for array in values]
        # All keep the order of the updates, as in LiteRT: of several updates that replace one value, the last one counts.
        if combine is None:
            flats[0][chosen] = given[0]
        elif isinstance(combine, Body):
            _combine(combine, flats, chosen, given)
        else:
            combine.at(flats[0], chosen, given[0])

    return quietly(scatter)


def _combine(body: Body, flats: list[Array], places: Array, updates: list[Array]) -> None:
    """Combine updates by a body: the first update of every position in one run, then the second ones, and so on."""
    if not places.size:
        return
    body.start()
    by_place = np.argsort(places, kind="stable")
    ordered = places[by_place]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    lengths = np.diff(np.r_[starts, len(ordered)])
    turn = np.arange(len(ordered)) - np.repeat(starts, lengths)
    by_turn = np.argsort(turn, kind="stable")
    edges = np.searchsorted(turn[by_turn], np.arange(int(lengths.max()) + 1))
    for first, last in pairwise(edges.tolist()):
        checkpoint()
        these = by_place[by_turn[first:last]]
        where = places[these]
        found = body(*(flat[where] for flat in flats), *(update[these] for update in updates))
        for flat, value in zip(flats, found):
            flat[where] = value


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=VALUES)
