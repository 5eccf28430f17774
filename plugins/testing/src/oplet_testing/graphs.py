"""Models of several subgraphs, whose tensors are named: for tests of control flow and of graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oplet import ModelBuilder
from oplet.errors import ModelError
from oplet.schema.table import Table
from oplet.toolkit import arguments as kinds
from oplet_testing.one_op import Spec, add_spec

__all__ = ["Graph", "Op", "graph_model"]


class Op(NamedTuple):
    """A node of a `Graph`.

    Attributes:
        op: a built-in operator's name, or a custom op's.
        inputs: names of tensors, separated by blanks; "-" for an optional one that is left out.
        outputs: names of tensors, separated by blanks.
        options: the options table of a built-in operator.
        custom_options: the options of a custom op: bytes, or a dict or list, which is encoded as FlexBuffers.
    """

    op: str
    inputs: str = ""
    outputs: str = ""
    options: Table | None = None
    custom_options: bytes | Mapping[str, Any] | Sequence[Any] = b""


class Graph(NamedTuple):
    """A subgraph for `graph_model`.

    Attributes:
        tensors: a Spec, or an array for a constant, by the tensor's name.
        inputs: names of tensors, separated by blanks.
        outputs: names of tensors, separated by blanks.
        ops: the nodes, in the order in which they run.
        name: its name in messages.
    """

    tensors: Mapping[str, Spec | NDArray[Any]]
    inputs: str = ""
    outputs: str = ""
    ops: Sequence[Op] = ()
    name: str = ""


#: The name of an optional input that is left out.
_LEFT_OUT = "-"
_TENSORS = kinds.Kind(
    "a mapping from names to Specs, or to arrays for constants",
    lambda value: (
        isinstance(value, Mapping)
        and all(isinstance(name, str) and isinstance(each, (Spec, np.ndarray)) for name, each in value.items())
    ),
)
_TEXT = kinds.Kind("names separated by blanks", lambda value: isinstance(value, str))
_OPS = kinds.Kind(
    "a list of Op(...)", lambda value: isinstance(value, (list, tuple)) and all(isinstance(each, Op) for each in value)
)
_GRAPHS = kinds.Kind("a Graph(...) for each subgraph", lambda value: all(isinstance(each, Graph) for each in value))
_SIGNATURES = kinds.Kind(
    "a mapping from keys to numbers of subgraphs",
    lambda value: isinstance(value, Mapping) and all(isinstance(key, str) and kinds.WHOLE.fits(at) for key, at in value.items()),
)


@kinds.takes(graphs=_GRAPHS, signatures=_SIGNATURES)
def graph_model(*graphs: Graph, signatures: Mapping[str, int] | None = None) -> bytes:
    """Return the bytes of a model with these subgraphs; the first is the one that runs.

    Args:
        signatures: subgraph numbers by signature key; a signature's inputs and outputs have their tensors' names.

    Raises:
        ModelError: a node, an input or an output names no tensor of its subgraph.

    Examples:
        >>> from oplet_testing.graphs import Graph, Op, graph_model
        >>> from oplet_testing.one_op import Spec, add_spec
        >>> x = Spec("float32", [2])
        >>> graph_model(Graph({"x": x, "y": x}, "x", "y", [Op("RELU", "x", "y")]))[4:8]
        b'TFL3'
    """
    builder = ModelBuilder("graphs")
    indices: list[dict[str, int]] = []
    for number, graph in enumerate(graphs):
        _check_graph(*graph)
        for each in graph.ops:
            _check_op(*each)
        subgraph = builder.add_subgraph(graph.name or f"graph {number}")
        at = {name: add_spec(subgraph, name, spec) for name, spec in graph.tensors.items()}
        subgraph.set_inputs(*_indices(at, graph.inputs, f"The inputs of graph {number}"))
        subgraph.set_outputs(*_indices(at, graph.outputs, f"The outputs of graph {number}"))
        for op, inputs, outputs, options, custom_options in graph.ops:
            where = f"Op({op!r}, {inputs!r}, {outputs!r}) of graph {number}"
            subgraph.add_operator(
                op,
                _indices(at, inputs, where, optional=True),
                _indices(at, outputs, where),
                options,
                custom_options=custom_options,
            )
        indices.append(at)
    for key, number in (signatures or {}).items():
        if not 0 <= number < len(graphs):
            raise ModelError(f"The signature '{key}' is of graph {number}; there are {len(graphs)}, from 0 on.")
        given, taken = (
            {name: indices[number][name] for name in names.split()} for names in (graphs[number].inputs, graphs[number].outputs)
        )
        builder.add_signature(key, given, taken, number)
    return builder.to_bytes()


@kinds.takes("Graph", tensors=_TENSORS, inputs=_TEXT, outputs=_TEXT, ops=_OPS, name=kinds.TEXT)
def _check_graph(tensors: object, inputs: object, outputs: object, ops: object, name: object) -> None:
    """Check the types of a Graph's fields: nothing else happens in the body, as a decorator makes the checks."""


@kinds.takes("Op", op=kinds.OPERATOR, inputs=_TEXT, outputs=_TEXT, options=kinds.OPTIONS)
def _check_op(op: object, inputs: object, outputs: object, options: object = None, custom_options: object = b"") -> None:
    """Check the types of an Op's fields: nothing else happens in the body, as a decorator makes the checks."""


def _indices(at: Mapping[str, int], names: str, where: str, *, optional: bool = False) -> list[int]:
    left_out = _LEFT_OUT if optional and _LEFT_OUT not in at else None
    for name in names.split():
        if name not in at and name != left_out:
            raise ModelError(
                f"{where} {'name' if where.startswith('The') else 'names'} '{name}', and there is no such tensor; there are {', '.join(at) or 'none'}."
            )
    return [-1 if name == left_out else at[name] for name in names.split()]
