"""A loop that replaces rows of a list in turn, as converters write it."""

from __future__ import annotations

import numpy as np

from oplet.schema.options import AddOptions, ConcatenationOptions, LessOptions, SliceOptions, WhileOptions
from oplet_testing.graphs import Graph, Op, graph_model
from oplet_testing.one_op import Spec

I = Spec("int32", [])  # noqa: E741


def unknown(axis: int) -> Spec:
    signature = [4, 3]
    signature[axis] = -1
    return Spec("float32", [1, 3] if axis == 0 else [4, 1], signature=signature)


def loop(steps: int = 4) -> bytes:
    """i from a start on; list[:i], a row of the list and of itself, list[i + 1:]: rows of a list are replaced in turn."""
    tensors = {
        "i": I, "list": Spec("float32", [4, 3]), "row": Spec("float32", [1, 3]), "end": np.array(steps, np.int32), "c": Spec("bool", []),
        "one": np.array(1, np.int32), "j": I, "i1": Spec("int32", [1]), "j1": Spec("int32", [1]), "shape": np.array([1], np.int32),
        "rest": np.array([-1], np.int32), "zero": np.array([0], np.int32), "zeros": np.array([0, 0], np.int32),
        "all": np.array([-1, -1], np.int32), "size": Spec("int32", [2]), "begin": Spec("int32", [2]), "next": Spec("float32", [1, 3]),
        "before": unknown(0), "after": unknown(0), "whole": Spec("float32", [4, 3]),
        "i_out": I, "list_out": Spec("float32", [4, 3]), "row_out": Spec("float32", [1, 3]),
    }  # fmt: skip
    of = ConcatenationOptions(axis=0)
    condition = [Op("LESS", "i end", "c", LessOptions())]
    body = [
        Op("ADD", "i one", "j", AddOptions()),
        Op("RESHAPE", "i shape", "i1"),
        Op("CONCATENATION", "i1 rest", "size", of),
        Op("SLICE", "list zeros size", "before", SliceOptions()),
        Op("RESHAPE", "j shape", "j1"),
        Op("CONCATENATION", "j1 zero", "begin", of),
        Op("SLICE", "list begin all", "after", SliceOptions()),
        Op("ADD", "row row", "next", AddOptions()),
        Op("CONCATENATION", "before row after", "whole", of),
    ]

    def graph(inputs: str, outputs: str, ops: list[Op]) -> Graph:
        names = {name for op in ops for name in op.inputs.split() + op.outputs.split()}.union(inputs.split(), outputs.split())
        return Graph({name: spec for name, spec in tensors.items() if name in names}, inputs, outputs, ops)

    options = WhileOptions(cond_subgraph_index=1, body_subgraph_index=2)
    return graph_model(
        graph("i list row", "i_out list_out row_out", [Op("WHILE", "i list row", "i_out list_out row_out", options)]),
        graph("i list row", "c", condition),
        graph("i list row", "j whole next", body),
    )
