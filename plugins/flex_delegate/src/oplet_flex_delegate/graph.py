"""Imports NodeDefs into a TensorFlow graph that never runs, to check attributes and infer shapes.

Kernels trust what the shape functions check, and eager execution does not call them; so nothing runs before it went through here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from numpy.typing import NDArray

from oplet_flex_delegate.library import reason_of, tensorflow

__all__ = ["Read", "RefusedError", "Shape", "Source", "import_nodes", "shapes_of"]

#: Sizes, None where one is unknown; None for an unknown rank.
Shape = tuple[int | None, ...] | None


class RefusedError(Exception):
    """Raised when TensorFlow rejects a node.

    Attributes:
        place: the index of the node among those that were to be imported.
    """

    def __init__(self, reason: str, place: int = 0) -> None:
        super().__init__(reason)
        self.place = place


class Source(NamedTuple):
    """A graph input: type, shape and value if known.

    Attributes:
        type: TensorFlow's DataType.
        shape: as far as it is known; None for an unknown rank, and for unknown sizes in it.
        value: its value, where it is known and output shapes may depend on it; else None.
    """

    type: int
    shape: Shape = None
    value: NDArray[Any] | None = None


#: What a node reads: a source's place, or a node's place and its output.
Read = int | tuple[int, int]


def import_nodes(sources: Sequence[Source], nodes: Sequence[tuple[Any, Sequence[Read]]]) -> list[Any]:
    """Import nodes into a graph; return TensorFlow operations with completed attributes and inferred output shapes.

    Args:
        sources: the graph's inputs.
        nodes: for each node, in order, its NodeDef and what its inputs are: the index of a source, or (index of a node, number of
            its output).

    Raises:
        RefusedError: TensorFlow refuses one of the nodes.
    """
    try:
        return _imported(sources, nodes)
    except _failures() as error:
        reason = reason_of(error)
        if len(nodes) == 1:
            raise RefusedError(reason) from error
    least, most = 0, len(nodes)  # the first `most` are refused, the first `least` are not
    while most - least > 1:
        middle = (least + most) // 2
        try:
            _imported(sources, nodes[:middle])
            least = middle
        except _failures() as error:
            most, reason = middle, reason_of(error)
    raise RefusedError(reason, most - 1)


def shapes_of(operation: Any) -> list[Shape]:
    """Return the shapes of an operation's outputs; None for an unknown rank."""
    return [None if each.shape.rank is None else tuple(each.shape.as_list()) for each in operation.outputs]


def _failures() -> tuple[type[Exception], ...]:
    return tensorflow().errors.OpError, ValueError, TypeError, RuntimeError, KeyError


def _imported(sources: Sequence[Source], nodes: Sequence[tuple[Any, Sequence[Read]]]) -> list[Any]:
    tf = tensorflow()
    definition = tf.compat.v1.GraphDef()
    for place, source in enumerate(sources):
        if source.value is None:
            given = definition.node.add(name=f"input{place}", op="Placeholder")
            shape = given.attr["shape"].shape
            if source.shape is None:
                shape.unknown_rank = True
            for size in source.shape or ():
                shape.dim.add(size=-1 if size is None else size)
        else:
            given = definition.node.add(name=f"input{place}", op="Const")
            given.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(source.value))
        given.attr["dtype"].type = source.type
    for place, (node, reads) in enumerate(nodes):
        added = definition.node.add()
        added.CopyFrom(node)
        added.name, added.device = f"node{place}", ""
        del added.input[:]
        added.input.extend(f"input{read}" if isinstance(read, int) else f"node{read[0]}:{read[1]}" for read in reads)
    graph = tf.Graph()
    with graph.as_default():
        tf.graph_util.import_graph_def(definition, name="")
    return [graph.get_operation_by_name(f"node{place}") for place in range(len(nodes))]
