"""Rules for constants that hold the batch size: the target [1, 128] of a reshape becomes [8, 128].

A rule gets one node whose inputs have their new shapes already. It returns a text that says what it changed, "" if nothing, and raises
`BatchError` if no constant can make the node right. Whether the results are right is checked afterwards, by running the model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet import Model
from oplet.errors import ModelError
from oplet.schema import tables
from oplet.schema.enums import BuiltinOperator, TensorType
from oplet.schema.options import ReshapeOptions, StridedSliceOptions, TransposeOptions
from oplet.schema.table import Table
from oplet.toolkit import made_tensors, numpy_dtype
from oplet.versions.model_versions import make_operator_code
from oplet.versions.op_version import op_version
from oplet_tools.rewriting.stripping import indices

__all__ = ["LATE_RULES", "RULES", "BatchError", "Graph", "NodeView", "changed_axes"]

Shapes = Sequence[tuple[int, ...]]


class BatchError(ModelError):
    """The batch size of a model cannot be changed."""


def changed_axes(before: Sequence[int], after: Sequence[int]) -> list[int] | None:
    """Return the dimensions in which two shapes differ; None if their ranks differ."""
    if len(before) != len(after):
        return None
    return [axis for axis, (old, new) in enumerate(zip(before, after)) if old != new]


@dataclass(eq=False)
class Graph:
    """A subgraph with its tensors' shapes at the old and at the new batch size."""

    model: Model
    index: int
    before: Shapes
    after: Shapes
    old: int  #: The old batch size.
    new: int  #: The new batch size, or the one that a free size is tested with.
    free: bool  #: Whether the batch size is to be left free, so that no constant may hold it.

    def __post_init__(self) -> None:
        self.table = (self.model.root.subgraphs or [])[self.index]

    def batch_axis(self, tensor: int) -> int | None:
        """Return the only dimension of a tensor that changed with the batch size; None if there is none or several."""
        if not 0 <= tensor < min(len(self.before), len(self.after)):
            return None
        before, after = self.before[tensor], self.after[tensor]
        axes = changed_axes(before, after)
        if axes is None or len(axes) != 1 or after[axes[0]] * self.old != before[axes[0]] * self.new:
            return None
        return axes[0]

    def scaled(self, size: int) -> int:
        """Return the new size of a dimension that has the old `size` and contains the batch, perhaps times other dimensions."""
        return size * self.new // self.old


class NodeView:
    """A node of a `Graph`, with its inputs by position; batch rules read and change the node through it, in place."""

    def __init__(self, graph: Graph, index: int) -> None:
        self.graph = graph
        self.index = index
        self.table = (graph.table.operators or [])[index]
        self.inputs = indices(self.table.inputs)
        self.outputs = indices(self.table.outputs)
        self.op, self.name, _ = graph.model.op_of(self.table)

    def __str__(self) -> str:
        return f"node {self.index} ({self.name}) of subgraph {self.graph.index}"

    def axis(self, position: int) -> int | None:
        """Return the batch dimension of an input; None if it has none."""
        return self.graph.batch_axis(self.inputs[position]) if position < len(self.inputs) else None

    def shape(self, position: int) -> tuple[int, ...]:
        """Return an input's shape at the old batch size."""
        return tuple(self.graph.before[self.inputs[position]])

    def constant(self, position: int) -> NDArray[Any] | None:
        """Return an input's constant as a view of the file; None if it is no constant, is sparse, or holds 2- or 4-bit integers
        or strings.
        """
        if not 0 <= position < len(self.inputs) or self.inputs[position] < 0:
            return None
        if self.inputs[position] in made_tensors(self.graph.table):
            return None
        tensor = (self.graph.table.tensors or [])[self.inputs[position]]
        packed = tensor.type in (TensorType.INT4, TensorType.UINT4, TensorType.INT2, TensorType.STRING)
        data = None if packed or tensor.sparsity is not None else self.graph.model.tensor_bytes(tensor)
        if data is None:
            return None
        dtype, shape = numpy_dtype(tensor.type), indices(tensor.shape)
        return np.frombuffer(data.tobytes(), dtype, prod(shape)).reshape(shape)

    def replace(self, position: int, value: NDArray[Any]) -> None:
        """Replace an input's constant by another value; other nodes that read the constant keep the old one."""
        root, subgraph = self.graph.model.root, self.graph.table
        tensors, place = subgraph.tensors or (), self.inputs[position]
        nodes = subgraph.operators or []
        uses = sum(indices(node.inputs).count(place) for node in nodes)
        listed = place in indices(subgraph.inputs) or place in indices(subgraph.outputs)
        tensor = tensors[place]
        if uses > 1 or listed:
            tensor = tables.Tensor(**tensor.__dict__)
            tensor.name = f"{tensor.name or 'constant'}/batch{len(tensors)}"
            self.inputs[position] = len(tensors)
            subgraph.tensors = [*tensors, tensor]
            self.table.inputs = np.array(self.inputs, np.int32)
        tensor.shape = np.array(value.shape, np.int32)
        tensor.buffer = len(root.buffers or [])
        tensor.external_buffer = 0
        raw = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
        root.buffers = [*(root.buffers or []), tables.Buffer(data=raw)]

    def replace_op(self, op: BuiltinOperator, options: Table) -> None:
        """Change the node to another built-in operator, in the lowest version that it needs."""
        root, tensors = self.graph.model.root, self.graph.table.tensors or ()
        version = op_version(op, [tensors[i] for i in self.inputs], [tensors[i] for i in self.outputs], options)
        self.table.opcode_index = len(root.operator_codes or [])
        self.table.builtin_options = options
        root.operator_codes = [*(root.operator_codes or []), make_operator_code(op, "", version)]

    def refuse(self, why: str) -> BatchError:
        """Make a `BatchError` that says why the batch size cannot be changed, and names this node."""
        return BatchError(f"{self} {why}")

    def refuse_if_free(self, what: str) -> None:
        """Raise a `BatchError` if the batch size stays free (-1), which a constant cannot hold; `what` names the constant."""
        if self.graph.free:
            raise self.refuse(f"takes {what} from a constant, which must hold a batch size; it cannot be left free.")


def _reshape(node: NodeView) -> str:
    axis = node.axis(0)
    options = node.table.builtin_options
    given = node.constant(1)
    if axis is None or (given is None and len(node.inputs) > 1):
        return ""
    listed = options.new_shape if isinstance(options, ReshapeOptions) else None
    if given is None and listed is None:
        return ""
    target = indices(listed) if given is None else given.reshape(-1).tolist()
    shape, out = node.shape(0), tuple(node.graph.before[node.outputs[0]])
    if len(out) != len(target) or not prod(out):
        return ""
    before = prod(shape[:axis])  # the batch dimension is where the product of the dimensions before it is the same
    places = [place for place, size in enumerate(out) if prod(out[:place]) == before and size % node.graph.old == 0]
    if not places:
        raise node.refuse(f"makes {list(shape)} into {list(out)}, where the batch in dimension {axis} is torn apart.")
    place = axis if axis in places else places[0]
    if target[place] == -1:
        return ""
    changed = list(out) if node.graph.free else list(target)
    changed[place] = -1 if node.graph.free else node.graph.scaled(out[place])
    if given is not None:
        node.replace(1, np.array(changed, given.dtype).reshape(given.shape))
    if isinstance(options, ReshapeOptions) and indices(listed) == target:
        options.new_shape = np.array(changed, np.int32)
    return f"reshapes to {changed} instead of {target}"


def _moved(node: NodeView) -> str:
    """Turn a reshape that moves a batch of one to another dimension, as converters write it, into a transpose; say so."""
    axis, order = node.axis(0), node.constant(1)
    shape, out = list(node.shape(0)), list(node.graph.before[node.outputs[0]])
    if axis is None or order is None or node.graph.old != 1 or shape[axis] != 1:
        return ""
    rest = shape[:axis] + shape[axis + 1 :]
    place = next((p for p, size in enumerate(out) if p != axis and size == 1 and out[:p] + out[p + 1 :] == rest), None)
    if place is None:
        return ""
    axes = [other for other in range(len(shape)) if other != axis]
    axes.insert(place, axis)
    node.replace(1, np.array(axes, order.dtype))
    node.replace_op(BuiltinOperator.TRANSPOSE, TransposeOptions())
    return f"transposes by {axes} instead of reshaping"


def _broadcast_to(node: NodeView) -> str:
    axis, target = node.axis(0), node.constant(1)
    if axis is None or target is None:
        return ""
    return _scale_dimension(node, 1, target, axis + target.size - len(node.shape(0)), "its shape")


def _transpose_conv(node: NodeView) -> str:
    axis, target = node.axis(2), node.constant(0)
    if axis is None or target is None or not target.size:
        return ""
    return _scale_dimension(node, 0, target, 0, "the shape of its output")


def _fill(node: NodeView) -> str:
    target = node.constant(0)
    if target is None or not target.size or target.reshape(-1)[0] != node.graph.old:
        return ""
    return _scale_dimension(node, 0, target, 0, "its shape")


def _scale_dimension(node: NodeView, position: int, target: NDArray[Any], place: int, what: str) -> str:
    node.refuse_if_free(what)
    changed = target.copy()
    changed.reshape(-1)[place] = node.graph.scaled(int(target.reshape(-1)[place]))
    node.replace(position, changed)
    return f"makes {changed.tolist()} instead of {target.tolist()}"


def _slice(node: NodeView) -> str:
    axis, begin, size = node.axis(0), node.constant(1), node.constant(2)
    if axis is None or begin is None or size is None:
        return ""
    if begin[axis] != 0 or size[axis] != node.shape(0)[axis]:
        return ""
    changed = size.copy()
    changed[axis] = -1 if node.graph.free else node.graph.scaled(int(size[axis]))
    node.replace(2, changed)
    return f"takes {changed.tolist()} instead of {size.tolist()}"


def _strided_slice(node: NodeView) -> str:
    axis, begin, end, strides = node.axis(0), node.constant(1), node.constant(2), node.constant(3)
    if axis is None or begin is None or end is None or strides is None:
        return ""
    given = node.table.builtin_options
    options = given if isinstance(given, StridedSliceOptions) else StridedSliceOptions()
    bit = 1 << axis
    if (
        axis >= begin.size
        or options.ellipsis_mask
        or options.new_axis_mask
        or (options.end_mask | options.shrink_axis_mask) & bit
    ):
        return ""
    starts = bool(options.begin_mask & bit) or begin[axis] == 0
    if not starts or strides[axis] != 1 or end[axis] != node.shape(0)[axis]:
        return ""
    if node.graph.free:
        options.end_mask |= bit
        node.table.builtin_options = options
        return f"ends where dimension {axis} does instead of at {end[axis]}"
    changed = end.copy()
    changed[axis] = node.graph.scaled(int(end[axis]))
    node.replace(2, changed)
    return f"ends at {changed.tolist()} instead of {end.tolist()}"


def _joined(node: NodeView) -> str:
    """Repeat constants that a node concatenates with a batch (a class token) once per example; say what was changed."""
    axes = [axis for position in range(len(node.inputs)) if (axis := node.axis(position)) is not None]
    return "; ".join(filter(None, (_repeat(node, position, axes[0]) for position in range(len(node.inputs))))) if axes else ""


def _loop_state(node: NodeView) -> str:
    """Repeat constants that are the initial state of a loop once per example; say what was changed."""
    return "; ".join(filter(None, (_repeat(node, position, 0) for position in range(len(node.inputs)))))


def _repeat(node: NodeView, position: int, axis: int) -> str:
    value = node.constant(position)
    if value is None or value.ndim <= axis or value.shape[axis] != node.graph.old:
        return ""
    one = value.take([0], axis)
    if not np.array_equal(value, np.repeat(one, node.graph.old, axis)):
        return ""
    node.refuse_if_free(f"input {position}")
    node.replace(position, np.repeat(one, node.graph.new, axis))
    return f"takes input {position} {node.graph.new} times instead of {node.graph.old}"


Rule = Callable[[NodeView], str]

#: Rules that are right whenever they apply.
RULES: dict[BuiltinOperator, Rule] = {
    BuiltinOperator.BROADCAST_TO: _broadcast_to,
    BuiltinOperator.CONCATENATION: _joined,
    BuiltinOperator.CONV_3D_TRANSPOSE: _transpose_conv,
    BuiltinOperator.PACK: _joined,
    BuiltinOperator.RESHAPE: _reshape,
    BuiltinOperator.SLICE: _slice,
    BuiltinOperator.STRIDED_SLICE: _strided_slice,
    BuiltinOperator.TRANSPOSE_CONV: _transpose_conv,
}

#: Rules that are tried only if the model does not run without them, because the graph does not show that they are meant.
LATE_RULES: dict[BuiltinOperator, Rule] = {
    BuiltinOperator.FILL: _fill,
    BuiltinOperator.RESHAPE: _moved,
    BuiltinOperator.WHILE: _loop_state,
}
