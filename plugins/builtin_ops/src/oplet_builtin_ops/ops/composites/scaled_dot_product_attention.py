"""odml.scaled_dot_product_attention: softmax(scale * q @ k.T + mask) @ v, head by head; litert-torch writes it for every attention.

    query   (batch, time, heads, size)
    key     (batch, length, groups, size)        so many heads share a key and a value: heads / groups
    value   (batch, length, groups, depth)
    mask    broadcasts to (batch, heads, time, length); may be left out
    output  (batch, time, heads, depth)

Attributes: `scale`, 1 / sqrt(size) unless given; `logit_cap`, which takes scores s to cap * tanh(s / cap) before the mask.

Numerics: PyTorch's scaled_dot_product_attention, as litert_torch/generative/layers/scaled_dot_product_attention.py calls it, and
tflite/delegates/xnnpack/xnnpack_delegate.cc (VisitDotAttentionNode), which gives the same where it takes the node. The decomposition in the file need not:
where one key serves all heads, litert-torch 0.10 writes it without a transposition.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Final

import numpy as np

from oplet import BuiltinOperator, Context, Node, Registration, TensorType, decline
from oplet.kernels.arrays import Array, Shape, Thunk
from oplet.schema.stablehlo_options import StableHLOCompositeOptions
from oplet_builtin_ops.control.calls import prepare_callee
from oplet_builtin_ops.layers.program import Call, lane_count, places, run_lanes, run_program
from oplet_builtin_ops.shaping.row_folds import fold_rows

_FLOAT32, _FLOAT16 = TensorType.FLOAT32, TensorType.FLOAT16
_TYPES: Final = (_FLOAT32, _FLOAT16)

#: The scores of a part, unless a few rows have more, which stay in the cache from one pass to the next.
_BLOCK: Final = 1 << 16
#: The least rows of a product.
_ROWS: Final = 16
#: About the seconds of a multiply-add, and of all else that is done per score.
_PRODUCT, _SCORE = 2e-11, 4e-9

#: The most rows that share a key, and the least keys, for which keys times rows is faster than rows times keys; and with very few rows, the
#: keys at a time. OpenBLAS would copy the keys into another order, which takes longer than the product of so few rows.
_FEW, _LONG = 16, 512
_VERY_FEW, _KEYS = 4, 256

_ATTRIBUTES: Final = frozenset({"scale", "logit_cap"})

#: The operators of a decomposition that has no mask of its own.
_MASKLESS: Final = frozenset(
    {
        BuiltinOperator.TRANSPOSE, BuiltinOperator.RESHAPE, BuiltinOperator.EXPAND_DIMS, BuiltinOperator.SQUEEZE, BuiltinOperator.BROADCAST_TO,
        BuiltinOperator.MUL, BuiltinOperator.DIV, BuiltinOperator.TANH, BuiltinOperator.BATCH_MATMUL, BuiltinOperator.SOFTMAX,
        BuiltinOperator.CAST,
    }
)  # fmt: skip


@dataclass(frozen=True)
class _Sizes:
    """The sizes of the dimensions: `groups` heads of keys and values, each shared by `shared` heads of queries."""

    batch: int
    groups: int
    shared: int
    time: int
    length: int
    size: int
    depth: int

    @property
    def rows(self) -> Shape:
        return self.batch, self.groups, self.shared, self.time


@dataclass(frozen=True)
class _Plan:
    """Plan of an attention, made by `prepare` for `bind`: the parts use the same few buffers one after the other.

    Attributes:
        sizes: the sizes of the dimensions.
        scale: the factor of the scores.
        cap: the cap of the scores, 0 for none.
        own: the mask that the decomposition itself makes; None where the node has a mask as an input, or none.
        parts: yields slices of batch, groups, shared and time.
        lanes: the number of parts that are computed in parallel.
    """

    sizes: _Sizes
    scale: float
    cap: float
    own: Array | None
    parts: Callable[[], Iterator[tuple[slice, ...]]]
    lanes: int


def prepare(context: Context, node: Node) -> None:
    """Check a scaled_dot_product_attention node, declining unsupported ones; divide the attention into parts that fit the cache."""
    scale, cap = _attributes(node)
    sizes = _sizes(node)
    own = _own_mask(context, node) if len(node.inputs) == 3 else None
    mask = node.inputs[3] if len(node.inputs) == 4 else own
    if mask is not None:
        _check_mask(mask.shape, sizes)
    context.resize_tensor(node.outputs[0], (sizes.batch, sizes.time, sizes.groups * sizes.shared, sizes.depth))
    count = math.prod(sizes.rows) * sizes.length
    lanes = lane_count(context, count * (_PRODUCT * (sizes.size + sizes.depth) + _SCORE))
    parts = partial(_parts, sizes.rows, sizes.length, lanes)
    first = list(islice(parts(), lanes)) if node.outputs[0].size else []
    lanes = max(1, len(first))
    node.prepared = _Plan(sizes, 1 / math.sqrt(max(sizes.size, 1)) if scale is None else scale, cap, own, parts, lanes)
    if not first:
        return
    widest = math.prod(_counts(first[0]))
    for width in (sizes.size, sizes.length, sizes.depth, 1):
        context.add_temporary(node, (lanes, widest * width))
    turned = _turned(_counts(first[0]), sizes.length)
    context.add_temporary(node, (lanes, widest * sizes.length if turned else 0))
    for tensor in node.inputs[1:3]:
        if tensor.type is _FLOAT16:
            context.add_temporary(node, tensor.shape)


def _attributes(node: Node) -> tuple[float | None, float]:
    """Return (scale or None for the default, soft cap of the scores or 0)."""
    attributes = node.composite_map()
    unknown = sorted(attributes.keys() - _ATTRIBUTES)
    if unknown:
        decline(f"the attribute{'s'[: len(unknown) > 1]} {', '.join(unknown)} {'are' if len(unknown) > 1 else 'is'} not known.")
    for name, value in attributes.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value)):
            decline(f"the attribute {name} is {value!r}, which is no number to compute with.")
    cap = attributes.get("logit_cap")
    if cap is not None and not cap > 0:
        decline(f"the attribute logit_cap is {cap}; it must be above 0.")
    scale = attributes.get("scale")
    return None if scale is None else float(scale), float(cap or 0)


def _sizes(node: Node) -> _Sizes:
    given = [node.has_input(position) for position in range(len(node.inputs))]
    if len(given) not in (3, 4) or not all(given) or len(node.outputs) != 1:
        decline(
            f"it takes query, key, value and a mask, and gives one output; this node reads {sum(given)} and writes {len(node.outputs)}."
        )
    query, key, value = node.inputs[:3]
    for tensor in (*node.inputs, *node.outputs):
        if tensor.type not in _TYPES:
            decline(f"{tensor} is of type {tensor.type.name}.")
    for tensor in (query, key, value):
        if tensor.ndim != 4:
            decline(f"{tensor} has {tensor.ndim} dimensions; batch, time, heads and size are four.")
    batch, time, heads, size = query.shape
    length, groups, depth = value.shape[1:]
    if key.shape != (batch, length, groups, size) or value.shape[0] != batch:
        decline(f"{query}, {key} and {value} do not fit each other.")
    if not groups or heads % groups:
        decline(f"{heads} heads cannot share {groups} keys evenly.")
    if not length:
        decline(f"{key} has nothing to attend to.")
    return _Sizes(batch, groups, heads // groups, time, length, size, depth)


def _check_mask(shape: Shape, sizes: _Sizes) -> None:
    scores = sizes.batch, sizes.groups * sizes.shared, sizes.time, sizes.length
    if len(shape) > 4 or any(m not in (1, n) for m, n in zip(shape[::-1], scores[::-1])):
        decline(f"the mask, {list(shape)}, does not broadcast to the scores, {list(scores)}.")


def _own_mask(context: Context, node: Node) -> Array | None:
    """Return the constant mask that the decomposition adds to the scores of a node without mask input (PyTorch's `is_causal`); or
    None.
    """
    index = node.options(StableHLOCompositeOptions).decomposition_subgraph_index
    if index < 0:
        return None
    callee = prepare_callee(context, index, "decomposition", node.inputs, len(node.outputs))
    try:
        # Constant folding has computed what depends on constants only.
        rest = [each for each in callee.nodes if not all(tensor.is_constant for tensor in each.outputs)]
        others = [each for each in rest if each.op not in _MASKLESS]
        if not others and not callee.is_dynamic:
            return None
        softened = {tensor for each in rest if each.op is BuiltinOperator.SOFTMAX for tensor in each.inputs}
        constants = [tensor for each in others for tensor in each.inputs if tensor is not None and tensor.is_constant]
        adds = [each.op for each in others] == [BuiltinOperator.ADD] and others[0].outputs[0] in softened
        if callee.is_dynamic or not adds or len(constants) != 1:
            names = ", ".join(sorted({each.op_name for each in others}))
            decline(f"it is given no mask, and its decomposition may have one of its own ({names}).")
        return constants[0].data
    finally:
        callee.release()


def _parts(rows: Shape, length: int, lanes: int) -> Iterator[tuple[slice, ...]]:
    """Yield index slices that divide the score matrix so that a part's scores fit the cache and every worker thread gets a part."""
    most = max(_BLOCK // length, _ROWS)
    if lanes > 1:
        most = min(most, -(-math.prod(rows) // lanes))
    inner, whole = 1, len(rows)
    while whole and inner * rows[whole - 1] <= most:
        whole -= 1
        inner *= rows[whole]
    rest = tuple(slice(0, count) for count in rows[whole:])
    if not whole:
        yield rest
        return
    step, count = max(1, most // inner), rows[whole - 1]
    for outer in places(rows[: whole - 1]):
        for start in range(0, count, step):
            yield (*(slice(i, i + 1) for i in outer), slice(start, min(start + step, count)), *rest)


def _counts(part: tuple[slice, ...]) -> Shape:
    return tuple(each.stop - each.start for each in part)


def _turned(counts: Shape, length: int) -> bool:
    """Return whether a part's scores are computed transposed, as keys times queries."""
    return length >= _LONG and 1 < counts[2] * counts[3] <= _FEW


def bind(context: Context, node: Node) -> Thunk:
    """Return a function that computes the attention part by part, or several parts in parallel if that is faster."""
    plan: _Plan = node.prepared
    if not node.outputs[0].size:
        return lambda: None
    buffers = [temporary.data for temporary in node.temporaries]
    wide = iter(buffers[5:])
    program: list[Call] = []
    key, value = (next(wide) if tensor.type is _FLOAT16 else tensor.data for tensor in node.inputs[1:3])
    for tensor, single in zip(node.inputs[1:3], (key, value)):
        if single is not tensor.data:
            program.append((np.copyto, (single, tensor.data)))
    mask = node.inputs[3].data if len(node.inputs) == 4 else plan.own
    attention = _Attention(plan, node.inputs[0].data, key, value, mask, node.outputs[0].data)

    def lane_calls(lane: int) -> Iterator[Call]:
        for part in islice(plan.parts(), lane, None, plan.lanes):
            yield from attention.calls(part, *(buffer[lane] for buffer in buffers[:5]))

    lanes = [partial(lane_calls, lane) for lane in range(plan.lanes)]
    return run_program(lambda: chain(program, run_lanes(context, lanes)))


class _Attention:
    """The attention's operands viewed as (batch, key heads, query heads per key head, time, ...)."""

    def __init__(self, plan: _Plan, query: Array, key: Array, value: Array, mask: Array | None, output: Array) -> None:
        self._sizes = sizes = plan.sizes
        split = sizes.batch, sizes.time, sizes.groups, sizes.shared
        self._query = query.reshape(*split, sizes.size).transpose(0, 2, 3, 1, 4)
        self._keys = key.transpose(0, 2, 3, 1)
        self._values = value.transpose(0, 2, 1, 3)
        self._output = output.reshape(*split, sizes.depth).transpose(0, 2, 3, 1, 4)
        self._scale = np.array(plan.scale, np.float32)
        self._cap = np.array(plan.cap, np.float32) if plan.cap else None
        self._mask: Array | None = None
        if mask is not None:
            shape = (1,) * (4 - mask.ndim) + mask.shape
            heads = (1, 1) if shape[1] == 1 else (sizes.groups, sizes.shared)
            self._mask = mask.reshape(shape[0], *heads, *shape[2:])

    def calls(self, part: tuple[slice, ...], query: Array, scores: Array, result: Array, row: Array, turned: Array) -> list[Call]:
        """Return numpy calls that compute one part in the given scratch buffers."""
        sizes, counts = self._sizes, _counts(part)
        count, stacks = math.prod(counts), counts[:2]
        rows = counts[2] * counts[3]  # the rows of all heads that share a key, which are multiplied with it together

        def of(buffer: Array, width: int, shape: Shape = counts) -> Array:
            return buffer[: count * width].reshape(*shape, width)

        together = (*stacks, rows)
        flat = of(scores, sizes.length, together)
        largest = of(row, 1, together)
        program: list[Call] = [
            (partial(np.multiply, dtype=np.float32), (self._query[part], self._scale, of(query, sizes.size))),
        ]
        scaled, keys = of(query, sizes.size, together), self._keys[part[:2]]
        if turned.size and _turned(counts, sizes.length):
            columns = turned[: flat.size].reshape(*stacks, sizes.length, rows)
            step = _KEYS if rows <= _VERY_FEW else sizes.length
            for start in range(0, sizes.length, step):
                some = slice(start, start + step)
                operands = keys[..., some].swapaxes(-1, -2), scaled.swapaxes(-1, -2), columns[:, :, some]
                program.append((np.matmul, operands))
            program.append((np.copyto, (flat, columns.swapaxes(-1, -2))))
        else:
            program.append((np.matmul, (scaled, keys, flat)))
        if (cap := self._cap) is not None:
            program += [(np.divide, (flat, cap, flat)), (np.tanh, (flat, flat)), (np.multiply, (flat, cap, flat))]
        if (mask := self._mask) is not None:
            masked, whole = of(scores, sizes.length), slice(None)
            own = tuple(each if n > 1 else whole for each, n in zip(part, mask.shape))
            program.append((np.add, (masked, mask[own], masked)))
        program += [
            (fold_rows(np.maximum, flat, largest), ()),
            (np.subtract, (flat, largest, flat)),
            (np.exp, (flat, flat)),
            (fold_rows(np.add, flat, largest), ()),
            (np.matmul, (flat, self._values[part[:2]], of(result, sizes.depth, together))),
            (np.divide, (of(result, sizes.depth), of(row, 1), self._output[part])),
        ]
        return program


REGISTRATION = Registration(
    prepare=prepare,
    bind=bind,
    pure=True,
    types=_TYPES,
    differences="equals PyTorch: with one key head and several batches, or a mask that only the decomposition has, XNNPACK computes something else",
)
