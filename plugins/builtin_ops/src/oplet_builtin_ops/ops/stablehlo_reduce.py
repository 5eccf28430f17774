"""STABLEHLO_REDUCE: a reduction over axes of one tensor, or of several together if the body says so.

A body of one sum, product, maximum, minimum, and, or is recognised; any other pure one is run. It combines neighbours in order,
where the specification leaves the order open.
"""

from __future__ import annotations

from math import prod

import numpy as np

from oplet import Context, Node, Registration, checkpoint, ensure
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.operands import ensure_operands, ensure_same_shape, ensure_same_type
from oplet.schema.stablehlo_options import StablehloReduceOptions
from oplet_builtin_ops.control.bodies import LANES, Body, prepare_body
from oplet_builtin_ops.control.regions import body_function
from oplet_builtin_ops.elementwise.stablehlo_elementwise import quietly
from oplet_builtin_ops.stablehlo import HALVES, VALUES, attribute, ensure_axes, ensure_not_quantized, ensure_values

#: From so many values on, they are divided into pieces that are reduced in parallel.
_LONG = 256


def prepare(context: Context, node: Node) -> None:
    count = max(1, len(node.inputs) // 2)
    ensure_operands(node, 2 * count, count)
    sources, initials = node.inputs[:count], node.inputs[count:]
    ensure_values(*sources)
    ensure_same_shape(*sources)
    for source, initial, output in zip(sources, initials, node.outputs):
        ensure_same_type(source, initial)
        ensure_same_type(source, output)
        ensure_not_quantized(source, output)
        ensure(initial.size == 1, f"the initial value {initial} must be one value, not {initial.size}.")
    options = node.options(StablehloReduceOptions)
    axes = tuple(attribute(options.dimensions))
    shape = sources[0].shape
    ensure_axes("dimensions", axes, len(shape))
    kept = [dim for axis, dim in enumerate(shape) if axis not in axes]
    index = options.body_subgraph_index
    function = body_function(context.callee(index), sources[0].type) if count == 1 else None
    body = None
    if function is None:
        folded = prod(shape[axis] for axis in axes)
        pieces = _pieces(prod(kept), folded)
        body = prepare_body(context, index, (*sources, *sources), node.outputs, prod(kept) * pieces)
    node.prepared = function, body, axes
    for output in node.outputs:
        context.resize_tensor(output, kept)


def _pieces(rows: int, folded: int) -> int:
    """Return into how many pieces each row is divided for a parallel reduction."""
    return 1 if folded < _LONG else max(1, min(LANES // max(1, rows), folded // 16))


def bind(context: Context, node: Node) -> Thunk:
    function, body, axes = node.prepared
    count = len(node.outputs)
    source, initial = (tensor.data for tensor in node.inputs[::count][:2])
    kept = [axis for axis in range(source.ndim) if axis not in axes]
    folded = prod(source.shape[axis] for axis in axes)
    order = [*kept, *axes]
    if function is None:
        sources, initials = ([tensor.data for tensor in tensors] for tensors in (node.inputs[:count], node.inputs[count:]))
        outputs = [tensor.data for tensor in node.outputs]
        turned = [source.transpose(order) for source in sources]
        return quietly(_fold, body, turned, initials, outputs, folded)
    output = node.outputs[0].data
    start = initial.reshape(())
    # Halves are summed in single precision and rounded once.
    wide = np.dtype(np.float32) if node.inputs[0].type in HALVES else source.dtype
    rows = source.transpose(order)

    def reduce() -> None:
        if not folded:
            output[...] = start
            return
        matrix = rows.reshape(*output.shape, folded).astype(wide, copy=False)
        logical = function in (np.logical_and, np.logical_or)
        value = function.reduce(matrix, axis=-1) if logical else function.reduce(matrix, axis=-1, dtype=wide)
        output[...] = function(start.astype(wide), value)

    return quietly(reduce)


def _fold(body: Body, turned: list[Array], initials: list[Array], outputs: list[Array], folded: int) -> None:
    """Reduce the last axes by a body: pieces of each row in parallel, then the pieces' results, starting with the initial values."""
    rows = outputs[0].size
    if not rows:
        return
    body.start()
    matrices = [values.reshape(rows, folded) for values in turned]
    pieces = _pieces(rows, folded)
    width = folded // pieces if pieces else 0
    if pieces > 1:
        whole = pieces * width
        cut = [matrix[:, :whole].reshape(rows * pieces, width) for matrix in matrices]
        found = [part[:, 0].copy() for part in cut]
        for step in range(1, width):
            checkpoint()
            found = _copies(body(*found, *(part[:, step] for part in cut)))
        matrices = [
            np.concatenate([values.reshape(rows, pieces), matrix[:, whole:]], axis=1) for values, matrix in zip(found, matrices)
        ]
    values = [np.broadcast_to(initial.reshape(()), (rows,)) for initial in initials]
    for step in range(matrices[0].shape[1]):
        checkpoint()
        values = _copies(body(*values, *(matrix[:, step] for matrix in matrices)))
    for output, value in zip(outputs, values):
        output[...] = value.reshape(output.shape)


def _copies(arrays: list[Array]) -> list[Array]:
    """Copy a body's results, which its next run overwrites."""
    return [array.copy() for array in arrays]


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=VALUES)
