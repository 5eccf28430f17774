"""STRIDED_SLICE: Python's slicing, [begin:end:stride] for each axis, with masks for open begins and ends.

Numerics: tflite/kernels/strided_slice.cc, tflite/kernels/internal/reference/strided_slice.h
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oplet import Context, Node, Registration, TensorType, ensure, ensure_fits, ensure_type
from oplet.kernels.arrays import Thunk, copier
from oplet.kernels.axes import read_ints
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet.kernels.shapes import defer_or_run
from oplet.schema.options import StridedSliceOptions
from oplet_builtin_ops.shaping.bounds import refuse_begin

#: A numpy index: slices, integers (for axes that are removed) and None (for new axes).
Index = tuple[Any, ...]


def _entries_fit(node: Node) -> bool:
    begin = node.inputs[1]
    return all(tensor.ndim == 1 and tensor.size == begin.size <= 31 for tensor in node.inputs[1:])


def _ensure_entries_fit(node: Node) -> None:
    begin = node.inputs[1]
    for tensor in node.inputs[1:]:
        if tensor.ndim != 1 or not tensor.size == begin.size <= 31:
            ensure(False, f"{tensor} must be a vector as long as {begin}, of at most 31 entries.")


def _axes(node: Node) -> list[tuple[int | None, int | None]]:
    """Match input axes with entries of begin/end/strides: (entry or None, axis length or None for a new axis) for each.

    The entry is None for an axis that is taken whole, the length is None for a new axis. As in LiteRT, an ellipsis stands for at
    least one axis, also if none is left for it.
    """
    source, begin = node.inputs[:2]
    options = node.options(StridedSliceOptions)
    entries = begin.size
    ellipses = [i for i in range(entries) if options.ellipsis_mask >> i & 1]
    ensure(len(ellipses) <= 1, f"ellipsis_mask {options.ellipsis_mask:#b} sets more than one ellipsis.")
    new = [i for i in range(entries) if options.new_axis_mask >> i & 1 and i not in ellipses]
    axes = source.ndim + len(new)
    layout: list[int | None] = list(range(entries))
    if ellipses:
        at = ellipses[0]
        layout[at : at + 1] = [None] * max(1, axes - entries + 1)
    layout = (layout + [None] * axes)[:axes]
    named = sum(entry not in new for entry in layout)
    ensure(
        entries - len(ellipses) <= axes and named == source.ndim,
        lambda: f"begin has {entries} entries, {len(new)} of them new axes, which do not fit the {source.ndim} axes of {source}.",
    )
    lengths = iter(source.shape)
    return [(entry, None if entry in new else next(lengths)) for entry in layout]


def _range(begin: int, end: int, stride: int, dim: int, begin_open: bool, end_open: bool, offset: bool) -> range:
    """Return the range of positions that one begin/end/stride entry selects along an axis of length `dim`."""
    low, high = (0, dim) if stride > 0 else (-1, dim - 1)
    start = min(max(begin + dim if begin < 0 else begin, low), high)
    if begin_open:
        start = low if stride > 0 else high
    if offset:
        end += start
    stop = min(max(end + dim if end < 0 else end, low), high)
    if end_open:
        stop = high if stride > 0 else low
    return range(start, stop, stride)


def _index(node: Node) -> tuple[tuple[int, ...], Index]:
    """Return the output's shape, and the numpy index that selects it from the input; raise if a single position is out of range.

    Raises:
        UnfitError: something would be read at a single position that its axis does not have.
    """
    shape, index, outside = _found(node)
    if outside is not None and 0 not in shape:
        entry, dim = outside
        begins = read_ints(node.inputs[1])
        refuse_begin(node.inputs[0], begins, begins[entry], dim)
    return shape, index


def _found(node: Node) -> tuple[tuple[int, ...], Index, tuple[int, int] | None]:
    """Return the output's shape, the numpy index, and the first out-of-range single position as (entry, axis length) or None."""
    _ensure_entries_fit(node)
    options = node.options(StridedSliceOptions)
    begins, ends, strides = (read_ints(tensor) for tensor in node.inputs[1:])
    shape: list[int] = []
    index: list[Any] = []
    outside: tuple[int, int] | None = None
    for entry, dim in _axes(node):
        if entry is None or dim is None:
            shape.append(1 if dim is None else dim)
            index.append(None if dim is None else slice(None))
            continue
        begin, stride = begins[entry], strides[entry]
        if not stride:
            ensure(False, f"the strides {strides} must not be zero.")
        begin_open = bool(options.begin_mask >> entry & 1)
        if options.shrink_axis_mask >> entry & 1:
            start = _range(begin, 0, stride, dim, begin_open, True, False).start
            ensure_fits(stride > 0, f"entry {entry} takes a single position, so its stride must be above zero, not {stride}.")
            if start >= dim and outside is None:
                outside = entry, dim
            index.append(start)
            continue
        taken = _range(begin, ends[entry], stride, dim, begin_open, bool(options.end_mask >> entry & 1), options.offset)
        shape.append(len(taken))
        index.append(slice(taken.start, taken.stop if taken.stop >= 0 else None, stride) if len(taken) else slice(0, 0))
    # The ellipsis gives a view where the indices alone would give a scalar.
    return tuple(shape), (*index, ...), outside


def taken_axes(node: Node) -> tuple[list[tuple[int, int]], Index] | None:
    """Return the entries of `begin` that select a single position, as (entry, axis), and the numpy index with 0 in their place.

    The result is None if strides or a range of another entry are known only at run time, or the node is invalid.
    """
    options = node.options(StridedSliceOptions)
    strides = node.inputs[3]
    if options.offset or not strides.is_constant or not _entries_fit(node):
        return None
    steps = read_ints(strides)
    index: list[Any] = []
    found: list[tuple[int, int]] = []
    axis = -1
    for entry, dim in _axes(node):
        axis += dim is not None
        if entry is None or dim is None:
            index.append(None if dim is None else slice(None))
        elif options.shrink_axis_mask >> entry & 1:
            if steps[entry] < 1:
                return None
            if not options.begin_mask >> entry & 1 or not dim:
                found.append((entry, axis))
            index.append(0)
        elif options.begin_mask & options.end_mask & 1 << entry and steps[entry]:
            index.append(slice(None, None, steps[entry]))
        else:
            return None
    return found, (*index, ...)


def _shape_without_begin(node: Node) -> Sequence[int] | None:
    """Return the output's shape if it does not depend on the values of `begin`; else None."""
    options = node.options(StridedSliceOptions)
    source, _, end, strides = node.inputs
    taken = taken_axes(node)
    if taken is not None:
        dims = iter(source.shape)
        axes = [(part, 1 if part is None else next(dims)) for part in taken[1] if part is not ...]
        return [dim if part is None else len(range(*part.indices(dim))) for part, dim in axes if part != 0]
    if not (options.offset and end.is_constant and strides.is_constant and _entries_fit(node)) or options.end_mask:
        return None
    lengths, steps = read_ints(end), read_ints(strides)
    ensure(0 not in steps, f"the strides {steps} must not be zero.")
    shape: list[int] = []
    for entry, dim in _axes(node):
        if entry is None or dim is None:
            shape.append(1 if dim is None else dim)
        elif not options.shrink_axis_mask >> entry & 1:
            shape.append(len(range(0, lengths[entry], steps[entry])))
    return shape


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 4)
    source, begin, end, strides = node.inputs
    output = node.outputs[0]
    ensure_same_type(source, output)
    for tensor in (begin, end, strides):
        ensure_type(tensor, TensorType.INT32)
    if all(tensor.is_constant for tensor in node.inputs[1:]):
        node.prepared = _found(node)[0]
    else:
        node.prepared = _shape_without_begin(node)
    if node.prepared is None:
        context.set_dynamic(output)
    else:
        context.resize_tensor(output, node.prepared)


def bind(context: Context, node: Node) -> Thunk:
    source, output, known = node.inputs[0], node.outputs[0], node.prepared
    if all(tensor.is_constant for tensor in node.inputs[1:]):
        return _bind_known(node)
    if known is None:
        return defer_or_run(context, node, lambda node: [_index(node)[0]], _bind_known, node.inputs[1:])
    last: bytes | None = None
    index: Index = ()

    def run() -> None:
        nonlocal last, index
        held = b"".join([tensor.data.tobytes() for tensor in node.inputs[1:]])
        if held != last:
            shape, index = _index(node)
            if list(shape) != known:
                ensure(False, f"begin {read_ints(node.inputs[1])} lets the slice of {list(known)} leave {source}.")
            last = held
        if output.size:
            output.data[...] = source.data[index]

    return run


def _bind_known(node: Node) -> Thunk:
    """Return the function that copies the slice for the present values of all inputs."""
    index = _index(node)[1]
    return copier(node.outputs[0].data, node.inputs[0].data[index]) if node.outputs[0].size else _nothing


def _nothing() -> None:
    """Do nothing, for an empty output; its index may be out of range."""


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True)
