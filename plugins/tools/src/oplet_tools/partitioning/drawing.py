"""SVG drawing of a model's graph before and after delegation."""

from __future__ import annotations

import os
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from xml.etree import ElementTree as ET

from oplet.texts import counted
from oplet_tools.partitioning.layout import Layout, lay_out
from oplet_tools.partitioning.partition import GraphTensor, Partition, Partitioning, SubgraphPartitioning, Traffic

__all__ = ["draw_partitioning"]

#: Fill and border colours of partitions, used in turn; partitions of the same colour have different numbers.
_COLOURS = (
    ("#cfe3fb", "#2f6fb3"),
    ("#fde0c1", "#c26a12"),
    ("#d3efd2", "#3c8a3a"),
    ("#f9d3e0", "#b83b6b"),
    ("#e4d8f7", "#7350b0"),
    ("#fbf0b4", "#9a8208"),
    ("#c9efec", "#1f8a84"),
    ("#ead9cc", "#86593a"),
)
_STYLE = """
text { font: 12px "DejaVu Sans", Verdana, sans-serif; fill: #1c2733; text-anchor: middle; }
.small { font-size: 10px; fill: #55606c; }
.name { font-weight: bold; }
.left { text-anchor: start; }
.head { font-size: 16px; font-weight: bold; }
.sub { font-size: 13px; font-weight: bold; }
.box { fill: #f6f7f9; stroke: #8d98a5; }
.port { fill: #ffffff; stroke: #8d98a5; stroke-dasharray: 3 2; }
.edge { fill: none; stroke: #7c8894; stroke-width: 1.3; stroke-linejoin: round; }
.border { stroke: #1c2733; stroke-width: 2; }
.touch { fill: none; stroke: #ffffff; stroke-opacity: 0; stroke-width: 11; pointer-events: stroke; }
.rule { stroke: #d5dae0; }
"""
#: Width of a letter by style, an upper estimate.
_LETTERS = {"": 7.6, "small": 6.5, "name": 8.6}
_LINE = 15.0
_PADDING = 9.0
_MARGIN = 28.0
_BETWEEN = 70.0
_LONGEST = 34
_LONGEST_LINE = 100
#: Most nodes that a kernel's box lists one by one; beyond that it lists numbers of nodes by op.
_MOST_LISTED = 12


class _Line(NamedTuple):
    """A line of text in a box."""

    text: str
    style: str = ""


class _Box(NamedTuple):
    """A box: a node, a kernel, or an input or output of the graph."""

    lines: list[_Line]
    tip: str
    reads: list[int]
    writes: list[int]
    style: str = "box"
    colours: tuple[str, str] | None = None
    partition: int | None = None

    @property
    def size(self) -> tuple[float, float]:
        widths = [len(line.text) * _LETTERS[line.style] for line in self.lines]
        return max(widths) + 2 * _PADDING, len(self.lines) * _LINE + _PADDING


class _Drawing(NamedTuple):
    """A graph with its layout."""

    boxes: list[_Box]
    tensors: dict[tuple[int, int], list[int]]
    layout: Layout


def draw_partitioning(result: Partitioning) -> bytes:
    """Draw every subgraph before delegation, on the left, and after, on the right.

    Boxes and edges have tool tips with names, shapes and bytes. The same model gives the same bytes.

    Raises:
        LayoutError: graphlay is not installed.
    """
    root = ET.Element("svg", {"xmlns": "http://www.w3.org/2000/svg"})
    _add(root, "title", text=f"{os.path.basename(result.file)}: {_claim(result)}")
    _add(root, "style", text=_STYLE)
    _marker(root)
    paper = _add(root, "rect", {"fill": "#ffffff", "width": "100%", "height": "100%"})
    _text(root, _MARGIN, _MARGIN + 12, os.path.basename(result.file), "left head")
    _text(root, _MARGIN, _MARGIN + 34, _claim(result), "left")
    width, y = 460.0, _MARGIN + 44
    if result.error:
        for line in textwrap.wrap(result.error, _LONGEST_LINE):
            y += _LINE
            _text(root, _MARGIN, y, line, "left")
    for partition in result.partitions:
        y += _LINE + 5
        _legend(root, partition, y)
    for subgraph in result.subgraphs:
        y += 40
        y, right = _row(root, subgraph, y)
        width = max(width, right)
    texts = [len(element.text or "") * _LETTERS[""] for element in root.iter("text") if "left" in element.get("class", "")]
    width = max([width, *(2 * _MARGIN + text for text in texts)])
    for element in (root, paper):
        element.set("width", _number(width))
        element.set("height", _number(y + _MARGIN))
    for rule in root.iter("line"):
        rule.set("x2", _number(width - _MARGIN))
    root.set("viewBox", f"0 0 {_number(width)} {_number(y + _MARGIN)}")
    ET.indent(root, " ")
    document: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _claim(result: Partitioning) -> str:
    parts = counted(len(result.partitions), "partition")
    return f"{' and '.join(result.delegates)}: {result.claimed} of {result.nodes} nodes in {parts}"


def _legend(root: ET.Element, partition: Partition, y: float) -> None:
    fill, stroke = _colours(partition)
    place = {
        "x": _number(_MARGIN),
        "y": _number(y - 11),
        "width": "20",
        "height": "14",
        "rx": "3",
        "fill": fill,
        "stroke": stroke,
    }
    _add(root, "rect", place)
    text = f"partition {partition.index}, {partition.delegate}: {counted(len(partition.nodes), 'node')}, {_traffic(partition)}"
    _text(root, _MARGIN + 28, y, text, "left")


def _traffic(partition: Partition) -> str:
    return f"{_bytes(partition.inputs)} in, {_bytes(partition.outputs)} out, {_bytes(partition.constants)} of constants"


def _row(root: ET.Element, subgraph: SubgraphPartitioning, y: float) -> tuple[float, float]:
    """Draw a subgraph before and after delegation, from `y` down; return the drawing's largest y and x coordinates."""
    _add(root, "line", {"class": "rule", "x1": _number(_MARGIN), "x2": "0", "y1": _number(y - 16), "y2": _number(y - 16)})
    y += 8
    _text(root, _MARGIN, y, f"subgraph {subgraph.index}" + (f" {subgraph.name!r}" if subgraph.name else ""), "left sub")
    before = _laid_out(_boxes(subgraph, after=False), subgraph)
    if not before.boxes:
        _text(root, _MARGIN, y + 22, "empty", "left")
        return y + 22, 0
    y += 24
    second = _MARGIN + max(before.layout.width, 120) + _BETWEEN
    _text(root, _MARGIN, y, "before" if subgraph.partitions else "before and after: everything stays", "left")
    _graph(root, subgraph, before, _MARGIN, y + 14)
    if subgraph.partitions:
        after = _laid_out(_boxes(subgraph, after=True), subgraph)
        _text(root, second, y, "after", "left")
        _graph(root, subgraph, after, second, y + 14)
        return y + 14 + max(before.layout.height, after.layout.height), second + after.layout.width + _MARGIN
    return y + 14 + before.layout.height, before.layout.width + 2 * _MARGIN


def _laid_out(boxes: list[_Box], subgraph: SubgraphPartitioning) -> _Drawing:
    makers: dict[int, int] = {}
    tensors: dict[tuple[int, int], list[int]] = {}
    # Boxes are in the order of the plan: a reader is connected to the last box that wrote the tensor, which matters for variables.
    for place, box in enumerate(boxes):
        for tensor in dict.fromkeys(box.reads):
            if tensor in makers:
                tensors.setdefault((makers[tensor], place), []).append(tensor)
        makers.update(dict.fromkeys(box.writes, place))
    return _Drawing(boxes, tensors, lay_out([box.size for box in boxes], tensors))


def _boxes(subgraph: SubgraphPartitioning, *, after: bool) -> list[_Box]:
    nodes = {node.index: node for node in subgraph.nodes}
    kernels = {partition.kernel: partition for partition in subgraph.partitions}
    homes = {partition.index: partition for partition in subgraph.partitions}
    plan = subgraph.plan if after else list(nodes)
    boxes = list(_ports(subgraph, "input", subgraph.inputs))
    for index in plan:
        if index in kernels:
            boxes.append(_kernel(subgraph, kernels[index]))
            continue
        node = nodes[index]
        home = None if node.partition is None else homes[node.partition]
        tip = [f"node {index}: {node.op}, version {node.version}"]
        tip += [f"partition {home.index} of {home.delegate}"] if home else []
        tip += [f"{delegate} leaves it: {reason or 'not claimed'}" for delegate, reason in node.why.items()]
        tip += _tips(subgraph, "reads", node.inputs) + _tips(subgraph, "writes", node.outputs)
        main = next((subgraph.tensors[t] for t in node.outputs if t >= 0), None)
        lines = [_Line(_short(f"{node.op} #{index}", _LONGEST))] + ([_Line(_shape(main), "small")] if main else [])
        colours, partition = (_colours(home), home.index) if home else (None, None)
        boxes.append(_Box(lines, "\n".join(tip), node.inputs, node.outputs, "box", colours, partition))
    boxes.extend(_ports(subgraph, "output", subgraph.outputs))
    return boxes


def _ports(subgraph: SubgraphPartitioning, role: str, tensors: list[int]) -> Iterator[_Box]:
    for index in tensors:
        if index < 0:
            continue
        tensor = subgraph.tensors[index]
        lines = [_Line(_short(f"{role} {tensor.name}", _LONGEST)), _Line(_shape(tensor), "small")]
        reads, writes = ([], [index]) if role == "input" else ([index], [])
        yield _Box(lines, f"{role}: {_described(tensor)}", reads, writes, "port")


def _kernel(subgraph: SubgraphPartitioning, partition: Partition) -> _Box:
    ops = {node.index: node.op for node in subgraph.nodes}
    lines = [
        _Line(_short(f"{partition.delegate} #{partition.kernel}", _LONGEST), "name"),
        _Line(f"partition {partition.index}", "small"),
    ]
    listed = [f"{ops[node]} #{node}" for node in partition.nodes]
    if len(listed) > _MOST_LISTED:
        counts = Counter(ops[node] for node in partition.nodes)
        listed = [f"{count} x {op}" for op, count in counts.most_common()]
    if len(listed) > _MOST_LISTED:
        listed[_MOST_LISTED - 1 :] = [f"and {len(listed) - _MOST_LISTED + 1} other ops"]
    lines += [_Line(_short(text, _LONGEST)) for text in listed]
    tip = [f"node {partition.kernel}: kernel of {partition.delegate}, for {len(partition.nodes)} nodes", _traffic(partition)]
    tip.append("replaces " + ", ".join(f"{ops[node]} {node}" for node in partition.nodes))
    tip += _tips(subgraph, "reads", partition.inputs.tensors) + _tips(subgraph, "writes", partition.outputs.tensors)
    reads, writes = partition.inputs.tensors + partition.constants.tensors, partition.outputs.tensors
    return _Box(lines, "\n".join(tip), reads, writes, "box", _colours(partition), partition.index)


def _graph(root: ET.Element, subgraph: SubgraphPartitioning, drawing: _Drawing, x: float, y: float) -> None:
    group = _add(root, "g", {"transform": f"translate({_number(x)} {_number(y)})"})
    boxes, layout = drawing.boxes, drawing.layout
    for (source, target), tensors in drawing.tensors.items():
        crosses = boxes[source].partition != boxes[target].partition
        path = _path(drawing, source, target)
        edge = _add(group, "g")
        _add(edge, "title", text="\n".join(_described(subgraph.tensors[tensor]) for tensor in tensors))
        _add(edge, "path", {"class": "touch", "d": path})
        marker = "url(#arrow-border)" if crosses else "url(#arrow)"
        _add(edge, "path", {"class": "edge border" if crosses else "edge", "d": path, "marker-end": marker})
    for box, (middle, centre) in zip(boxes, layout.boxes):
        _draw_box(group, box, middle, centre)


def _draw_box(group: ET.Element, box: _Box, x: float, y: float) -> None:
    width, height = box.size
    element = _add(group, "g")
    _add(element, "title", text=box.tip)
    frame = {"x": x - width / 2, "y": y - height / 2, "width": width, "height": height, "rx": 10 if box.style == "port" else 4}
    shape = {"class": box.style} | {key: _number(value) for key, value in frame.items()}
    if box.colours is not None:
        shape["style"] = f"fill: {box.colours[0]}; stroke: {box.colours[1]}; stroke-width: 1.6"
    _add(element, "rect", shape)
    for place, line in enumerate(box.lines):
        _text(element, x, y - height / 2 + _PADDING / 2 + 11 + place * _LINE, line.text, line.style)


def _path(drawing: _Drawing, source: int, target: int) -> str:
    """Return the SVG path of an edge, from the lower side of the box `source` to the upper side of the box `target`."""
    return "M" + " L".join(f"{_number(x)} {_number(y)}" for x, y in drawing.layout.edges[source, target])


def _marker(root: ET.Element) -> None:
    definitions = _add(root, "defs")
    for name, colour in (("arrow", "#7c8894"), ("arrow-border", "#1c2733")):
        size = {"markerWidth": "9", "markerHeight": "9", "refX": "8", "refY": "4.5", "orient": "auto"}
        marker = _add(definitions, "marker", {"id": name, "markerUnits": "userSpaceOnUse", **size})
        _add(marker, "path", {"d": "M0 1 L9 4.5 L0 8 z", "fill": colour})


def _colours(partition: Partition) -> tuple[str, str]:
    return _COLOURS[partition.index % len(_COLOURS)]


def _tips(subgraph: SubgraphPartitioning, verb: str, tensors: Iterable[int]) -> list[str]:
    return [f"{verb} {_described(subgraph.tensors[index])}" for index in tensors if index >= 0]


def _described(tensor: GraphTensor) -> str:
    size = "bytes unknown" if tensor.bytes is None else f"{tensor.bytes:,} bytes"
    name = f" '{tensor.name}'" if tensor.name else ""
    return f"tensor {tensor.index}{name}: {_shape(tensor)}, {size}" + (", constant" if tensor.constant else "")


def _shape(tensor: GraphTensor) -> str:
    return f"{tensor.type.lower()} [{', '.join(map(str, tensor.shape))}]"


def _bytes(traffic: Traffic) -> str:
    known = f"{traffic.bytes:,} bytes"
    return f"{known} and {traffic.unknown} of unknown size" if traffic.unknown else known


def _short(text: str, longest: int) -> str:
    """Shorten a long text by leaving its middle out, which tells the least in joined names."""
    return text if len(text) <= longest else f"{text[: longest // 2 - 1]}...{text[-(longest // 2 - 2) :]}"


def _add(parent: ET.Element, tag: str, attributes: dict[str, str] | None = None, text: str = "") -> ET.Element:
    element = ET.SubElement(parent, tag, {} if attributes is None else attributes)
    if text:
        element.text = _printable(text)
    return element


def _text(parent: ET.Element, x: float, y: float, text: str, style: str) -> None:
    _add(parent, "text", {"x": _number(x), "y": _number(y)} | ({"class": style} if style else {}), text)


def _printable(text: str) -> str:
    """Replace characters that XML forbids or that are invisible; names in a model may hold any."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def _number(value: float) -> str:
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text
