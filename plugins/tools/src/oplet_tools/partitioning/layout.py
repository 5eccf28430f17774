"""Layered layout of a directed graph (Sugiyama's method, coordinates by network simplex), computed by the package graphlay."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from oplet.errors import OpletError
from oplet.toolkit import install_command

__all__ = ["Layout", "LayoutError", "ensure_layout", "lay_out"]

Point = tuple[float, float]

_OPTIONS = {
    "direction": "topbottom",
    "routing": {"style": "diagonal"},
    # Gaps between layers, between boxes of one layer, and on both sides of an edge that passes a layer.
    "spacing": {"layer_gap": 34.0, "node_gap": 28.0, "dummy_gap": 14.0},
}


class LayoutError(OpletError, RuntimeError):
    """graphlay is not installed, or refuses a graph."""


class Layout(NamedTuple):
    """Coordinates of a graph's boxes and edges, in the unit of the boxes' sizes."""

    width: float  #: Width of the drawing.
    height: float  #: Height of the drawing.
    boxes: list[Point]  #: (x, y) of the centre of each box.
    #: Points (x, y) of each edge, from the lower side of one box to the upper side of the other.
    edges: dict[tuple[int, int], list[Point]]


def ensure_layout() -> None:
    """Check that graphlay is installed.

    Raises:
        LayoutError: graphlay is not installed.
    """
    try:
        import graphlay  # noqa: F401
    except ModuleNotFoundError as error:
        raise LayoutError(f"Drawing a graph needs graphlay; install it: {install_command('oplet-tools', 'graph')}.") from error


def lay_out(sizes: Sequence[tuple[float, float]], edges: Collection[tuple[int, int]]) -> Layout:
    """Lay out boxes, each above those that its edges lead to; the same graph gives the same coordinates on every machine.

    Args:
        sizes: width and height of each box.
        edges: pairs (from, to) of boxes; the graph has no cycles.

    Raises:
        LayoutError: graphlay is not installed, or refuses the graph.
    """
    ensure_layout()
    import graphlay

    if not sizes:
        return Layout(0.0, 0.0, [], {})
    pairs = sorted(set(edges))
    graph = {
        "nodes": [
            {"key": str(index), "size": {"width": width, "height": height}, "shape": "box"}
            for index, (width, height) in enumerate(sizes)
        ],
        "edges": [{"source": source, "target": target, "weight": 1.0} for source, target in pairs],
    }
    try:
        placed = graphlay.layout(graph, options=_OPTIONS)
    except graphlay.GraphlayError as error:
        raise LayoutError(
            f"graphlay {graphlay.__version__} does not lay this graph of {len(sizes)} boxes and {len(pairs)} edges out "
            f"({error}); look at the partitions without a drawing."
        ) from error
    low, high = _point(placed.bounds["min"]), _point(placed.bounds["max"])
    boxes = [_point(node["center"], low) for node in placed.nodes]
    lines = [[_point(point, low) for point in edge["points"]] for edge in placed.edges]
    return Layout(high[0] - low[0], high[1] - low[1], boxes, dict(zip(pairs, lines)))


def _point(place: dict[str, Any], origin: Point = (0.0, 0.0)) -> Point:
    return place["x"] - origin[0], place["y"] - origin[1]
