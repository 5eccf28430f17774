"""Places for the boxes of a directed graph, layer by layer, so that few edges cross.

The method (Sugiyama's, with Brandes' and Koepf's coordinates) is grandalf's, which needs no program of the system.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from oplet.errors import OpletError

__all__ = ["Layout", "LayoutError", "ensure_layout", "lay_out"]

Point = tuple[float, float]

_GAP_X = 28.0
_GAP_Y = 34.0
#: The room that an edge takes where it passes a layer.
_LANE = 8.0


class LayoutError(OpletError, RuntimeError):
    """The package that lays graphs out is missing."""


class Layout(NamedTuple):
    """Where things are.

    Attributes:
        width: of everything.
        height: of everything.
        boxes: the boxes' centres.
        edges: the points that each edge passes between its boxes.
    """

    width: float
    height: float
    boxes: list[Point]
    edges: dict[tuple[int, int], list[Point]]


class _View:
    """What grandalf keeps about a box or edge."""

    def __init__(self, width: float = 0.0, height: float = 0.0) -> None:
        self.w = width
        self.h = height
        self.xy: Point = (0.0, 0.0)
        self.path: list[Point] = []

    def setpath(self, path: list[Point]) -> None:
        self.path = path


def ensure_layout() -> None:
    """Check that the package is there.

    Raises:
        LayoutError: it is not.
    """
    try:
        import grandalf.layouts  # noqa: F401
    except ModuleNotFoundError as error:
        raise LayoutError('Drawing a graph needs grandalf; install it: pip install "oplet[graph]".') from error


def lay_out(sizes: Sequence[tuple[float, float]], edges: Collection[tuple[int, int]]) -> Layout:
    """Place boxes, sources above targets.

    Args:
        sizes: width and height of each box.
        edges: pairs (from, to) of boxes; the graph has no cycles.

    Raises:
        LayoutError: the package that does it is missing.
    """
    ensure_layout()
    from grandalf.graphs import Edge, Graph, Vertex

    vertices = [Vertex(index) for index in range(len(sizes))]
    for vertex, size in zip(vertices, sizes):
        vertex.view = _View(*size)
    lines = {pair: Edge(vertices[pair[0]], vertices[pair[1]]) for pair in sorted(set(edges))}
    for line in lines.values():
        line.view = _View()
    boxes: list[Point] = [(0.0, 0.0)] * len(sizes)
    paths: dict[tuple[int, int], list[Point]] = {}
    left = height = 0.0
    # Parts that hang together, next to each other.
    for part in sorted(Graph(vertices, list(lines.values())).C, key=lambda part: min(v.data for v in part.sV)):
        rows = _place(part)
        members = [vertex.data for vertex in part.sV]
        shift = left - min(vertices[i].view.xy[0] - sizes[i][0] / 2 for i in members)
        for i in members:
            x, y = vertices[i].view.xy
            boxes[i] = x + shift, y
        inside = {pair: line for pair, line in lines.items() if line in part.sE}
        for pair, line in inside.items():
            # Straight past the boxes of each layer, however high they are.
            passed = [(x + shift, y, rows[y] / 2) for x, y in line.view.path[1:-1]]
            paths[pair] = [point for x, y, half in passed for point in ((x, y - half), (x, y + half))]
        lanes = [x for pair in inside for x, _ in paths[pair]]
        least = min(lanes, default=left)
        if least < left:  # an edge passes on the left of every box
            for i in members:
                boxes[i] = boxes[i][0] + left - least, boxes[i][1]
            for pair in inside:
                paths[pair] = [(x + left - least, y) for x, y in paths[pair]]
            lanes = [x + left - least for x in lanes]
        left = max([boxes[i][0] + sizes[i][0] / 2 for i in members] + lanes) + _GAP_X
        height = max([height] + [boxes[i][1] + sizes[i][1] / 2 for i in members])
    return Layout(max(left - _GAP_X, 0.0), height, boxes, paths)


def _place(part: Any) -> dict[float, float]:
    """Set the places of a connected part; returns the height of each layer, by where its middle is."""
    from grandalf.layouts import SugiyamaLayout

    layout = SugiyamaLayout(part)
    layout.xspace, layout.yspace = _GAP_X, _GAP_Y
    layout.dw, layout.dh = _LANE, 1.0
    # Sources go next to their readers: models have many constants that a node widens.
    layout.init_all(optimize=True)
    layout.draw(3)
    for layer in layout.layers:
        views = [vertex.view for vertex in layer]
        for view, x in zip(views, _spread([view.xy[0] for view in views], [view.w for view in views])):
            view.xy = x, view.xy[1]
    layout.draw_edges()
    return {layer[0].view.xy[1]: max(vertex.view.h for vertex in layer) for layer in layout.layers}


def _spread(centres: Sequence[float], widths: Sequence[float]) -> list[float]:
    """Move boxes of one layer apart where they overlap, all together as little as possible (least squares).

    The coordinates are means of four layouts, of which each keeps its distances, but the mean may not.
    """
    # Without the least distances, what is looked for is the nearest sequence that never falls: neighbours that do are pooled.
    shifts = [0.0]
    for left, right in itertools.pairwise(widths):
        shifts.append(shifts[-1] + (left + right) / 2 + _GAP_X)
    pools: list[tuple[float, int]] = []
    for centre, shift in zip(centres, shifts):
        mean, count = centre - shift, 1
        while pools and pools[-1][0] > mean:
            other, others = pools.pop()
            mean, count = (mean * count + other * others) / (count + others), count + others
        pools.append((mean, count))
    means = [mean for mean, count in pools for _ in range(count)]
    return [mean + shift for mean, shift in zip(means, shifts)]
