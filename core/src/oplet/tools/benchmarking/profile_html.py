"""A profile as a self-contained HTML page: sortable tables, bars, and a flame chart of one inference."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template

from oplet.runtime.describe.profiler import Event
from oplet.texts import plain
from oplet.tools.benchmarking.profile import Place, Profile, nested

__all__ = ["profile_page"]

_PAGE = Path(__file__).parent / "templates" / "page.html"
_WIDTH = 1000.0
_ROW = 22.0
#: Width of a letter, about; a box shows its op's name if that fits.
_LETTER = 7.0

#: A table's column: its heading, and whether it holds numbers (None: it cannot be sorted).
_Column = tuple[str, bool | None]


def profile_page(
    title: str,
    facts: Sequence[tuple[str, str]],
    profile: Profile,
    events: Sequence[Event] = (),
    names: Mapping[Place, str] | None = None,
) -> str:
    """The HTML page of a profile.

    Args:
        title: the page's title.
        facts: other results, as pairs of name and text.
        profile: the profile.
        events: events of one inference, for the flame chart.
        names: names of the nodes.
    """
    rows = "".join(f'<tr><th scope="row">{_text(name)}</th><td>{_text(value)}</td></tr>' for name, value in facts)
    return Template(_PAGE.read_text(encoding="utf-8")).substitute(
        title=_text(title),
        facts=f'<table class="facts"><tbody>{rows}</tbody></table>',
        flame=_flame(events, names or {}),
        ops=_ops(profile),
        nodes=_nodes(profile),
    )


def _text(text: str) -> str:
    """Text escaped for HTML; control characters and lone surrogates, which HTML cannot hold, become escape sequences."""
    return escape(plain(text))


def _ops(profile: Profile) -> str:
    columns: list[_Column] = [
        ("op", False), ("nodes", True), ("calls", True), ("ms", True), ("%", True), ("cumulative %", True), ("", None),
    ]  # fmt: skip
    most = max((op.share for op in profile.ops), default=1.0) or 1.0
    rows = [
        [
            _cell(op.op),
            _number(op.nodes, "{:.0f}"),
            _number(op.calls, "{:g}"),
            _number(op.seconds * 1e3, "{:.3f}"),
            _number(op.share * 100, "{:.1f}"),
            _number(op.cumulative * 100, "{:.1f}"),
            _bar(op.share / most),
        ]
        for op in profile.ops
    ]
    return _table(columns, rows)


def _nodes(profile: Profile) -> str:
    columns: list[_Column] = [
        ("order", True), ("subgraph", True), ("node", True), ("op", False), ("outputs", False), ("start ms", True),
        ("first ms", True), ("ms", True), ("shortest ms", True), ("calls", True), ("%", True), ("", None),
    ]  # fmt: skip
    most = max((node.share for node in profile.nodes), default=1.0) or 1.0
    rows = [
        [
            _number(order, "{:.0f}"),
            _number(node.subgraph, "{:.0f}"),
            _number(node.node, "{:.0f}"),
            _cell(node.label),
            _cell(node.name),
            _number(node.start * 1e3, "{:.3f}"),
            _number(node.first * 1e3, "{:.3f}"),
            _number(node.seconds * 1e3, "{:.3f}"),
            _number(node.least * 1e3, "{:.3f}"),
            _number(node.calls, "{:g}"),
            _number(node.share * 100, "{:.1f}"),
            _bar(node.share / most),
        ]
        for order, node in enumerate(profile.nodes)
    ]
    return _table(columns, rows)


def _table(columns: Sequence[_Column], rows: Sequence[Sequence[str]]) -> str:
    kinds = {None: "", False: ' data-kind="text"', True: ' data-kind="number" class="number"'}
    head = "".join(f'<th scope="col"{kinds[number]}>{escape(name)}</th>' for name, number in columns)
    body = "\n".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return f'<table class="sortable"><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>'


def _cell(text: str) -> str:
    return f"<td>{_text(text)}</td>"


def _number(value: float, shape: str) -> str:
    return f'<td class="number" data-value="{value!r}">{shape.format(value)}</td>'


def _bar(part: float) -> str:
    return f'<td class="bar"><div style="width:{part * 100:.2f}%"></div></td>'


def _flame(events: Sequence[Event], names: Mapping[Place, str]) -> str:
    if not events:
        return "<p>No node ran.</p>"
    levels = list(nested(events))
    begin = min(event.start for event in events)
    whole = max(event.start + event.seconds for event in events) - begin or 1.0
    boxes = []
    for event, _, depth in levels:
        x, width = (event.start - begin) / whole * _WIDTH, event.seconds / whole * _WIDTH
        name = names.get((event.subgraph, event.node), "")
        hint = f"{event.label} (node {event.node} of subgraph {event.subgraph}) {name}: {event.seconds * 1e3:.3f} ms"
        y = depth * _ROW
        boxes.append(
            f'<rect x="{x:.2f}" y="{y:g}" width="{max(width, 0.1):.2f}" height="{_ROW:g}" fill="{_colour(event.label)}">'
            f"<title>{_text(hint)}</title></rect>"
        )
        if len(event.label) * _LETTER < width:
            boxes.append(f'<text x="{x + 3:.2f}" y="{y + 15:g}">{_text(event.label)}</text>')
    height = _ROW * (max(depth for _, _, depth in levels) + 1)
    return (
        f'<svg viewBox="0 0 {_WIDTH:g} {height:g}" role="img" aria-label="nodes over time">{"".join(boxes)}</svg>'
        f"<p>{whole * 1e3:.3f} ms from left to right; a box is a run of a node, and lies under the node that called it.</p>"
    )


def _colour(label: str) -> str:
    """The colour of an op, the same in every page."""
    return f"hsl({zlib.crc32(label.encode('utf-8', 'surrogatepass')) % 360} 60% 72%)"
