"""Helpers for specs whose model has several nodes or subgraphs."""

from __future__ import annotations

from collections.abc import Sequence

from oplet import ModelBuilder, TensorType
from oplet.model.builders.model_builder import SubgraphBuilder
from oplet.schema.table import Table

from ..harness import Case
from ..strategies import Arg, Draw


def declare(graph: SubgraphBuilder, name: str, arg: Arg) -> int:
    """Add an Arg to a graph."""
    data = arg.values() if arg.constant else None
    return graph.add_tensor(
        name, arg.type, arg.shape, data=data, scale=arg.scale, zero_point=arg.zero_point, is_variable=arg.variable
    )


def case(
    draw: Draw, builder: ModelBuilder, fed: Sequence[Arg], note: str, *, rtol: float = 1e-5, atol: float = 1e-6, steps: int = 2
) -> Case:
    """A case of a model whose inputs are `fed`, run `steps` times on other values."""
    feeds = [[arg.values() for arg in fed]]
    for _ in range(steps - 1):
        feeds.append([arg.make() if arg.make is not None else arg.values() for arg in fed])
    return Case(builder.to_bytes(), feeds, rtol, atol, 0.0, draw.broken, f"{draw.op} {note}")


def chain(
    graph: SubgraphBuilder,
    inputs: Sequence[tuple[TensorType, Sequence[int]]],
    nodes: Sequence[tuple[str, list[int], Table | None]],
) -> list[int]:
    """Fill a graph: its inputs are the tensors 0, 1, ...; each node adds one tensor like input 0. Returns all indices."""
    made = [graph.add_tensor(f"in_{i}", type, shape) for i, (type, shape) in enumerate(inputs)]
    graph.set_inputs(*made)
    for op, args, options in nodes:
        type, shape = inputs[0]
        made.append(graph.add_tensor(f"t_{len(made)}", type, shape))
        graph.add_operator(op, [made[i] for i in args], [made[-1]], options)
    return made
