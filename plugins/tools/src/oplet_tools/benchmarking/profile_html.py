"""A profile as a self-contained HTML page: sortable tables, bars, and a flame chart of one inference."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template

from oplet.texts import plain
from oplet.toolkit import Event
from oplet_tools.benchmarking.profile import NodeCost, Place, Profile, nested
from oplet_tools.benchmarking.profiling.peaks import Peaks

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
    peaks: Peaks | None = None,
) -> str:
    """Make the HTML page of a profile.

    Args:
        facts: other results, as pairs of name and text.
        events: events of one inference, for the flame chart.
        names: names of the nodes, by (subgraph, node).
        peaks: the machine's highest throughputs, to compare the nodes with; None to leave this out.
    """
    rows = "".join(f'<tr><th scope="row">{_text(name)}</th><td>{_text(value)}</td></tr>' for name, value in facts)
    return Template(_PAGE.read_text(encoding="utf-8")).substitute(
        title=_text(title),
        facts=f'<table class="facts"><tbody>{rows}</tbody></table>',
        flame=_flame(events, {} if names is None else names),
        ops=_ops(profile),
        nodes=_nodes(profile, peaks),
    )


def _text(text: str) -> str:
    """Escape a text for HTML; control characters and lone surrogates, which HTML cannot hold, become escape sequences."""
    return escape(plain(text))


def _ops(profile: Profile) -> str:
    columns: list[_Column] = [
        ("op", False), ("nodes", True), ("calls", True), ("ms", True), ("%", True), ("", None), ("cumulative %", True), ("MMAC", True),
        ("GFLOP/s", True),
    ]  # fmt: skip
    most = max((op.share for op in profile.ops), default=1.0) or 1.0
    rows = [
        [
            _cell(op.op),
            _number(op.nodes, "{:.0f}"),
            _number(op.calls, "{:g}"),
            _number(op.seconds * 1e3, "{:.3f}"),
            _number(op.share * 100, "{:.1f}"),
            _bar(op.share / most),
            _number(op.cumulative * 100, "{:.1f}"),
            _number(op.macs, "{:.2f}", 1e-6),
            _number(op.gflops, "{:.1f}"),
        ]
        for op in profile.ops
    ]
    return _table(columns, rows)


def _nodes(profile: Profile, peaks: Peaks | None) -> str:
    columns: list[_Column] = [
        ("order", True), ("rank", True), ("node", False), ("op", False), ("ms", True), ("\u00b1", True), ("%", True), ("", None),
        ("outputs", False), ("shapes", False), ("MMAC", True), ("MB", True), ("GFLOP/s", True), ("FLOP/byte", True),
        *([("of peak %", True), ("bound by", False)] if peaks else []),
        ("first ms", True), ("mean ms", True), ("shortest ms", True), ("disturbed", True), ("calls", True), ("start ms", True),
    ]  # fmt: skip
    most = max((node.share for node in profile.nodes), default=1.0) or 1.0
    rows = [
        [
            _number(order, "{:.0f}"),
            _number(node.rank, "{:.0f}"),
            _cell(f"{node.subgraph}:{node.node}" if node.subgraph else str(node.node)),
            _cell(node.label),
            _number(node.seconds * 1e3, "{:.3f}"),
            _number((node.high - node.low) / 2 * 1e3, "{:.3f}"),
            _number(node.share * 100, "{:.1f}"),
            _bar(node.share / most),
            _cell(node.name, "long"),
            _cell(f"{', '.join(node.inputs)} \u2192 {', '.join(node.outputs)}" if node.outputs else "", "long shapes"),
            _number(node.macs, "{:.2f}", 1e-6),
            _number(node.read + node.written, "{:.2f}", 1e-6),
            _number(node.gflops, "{:.1f}"),
            _number(node.intensity, "{:.1f}"),
            *(_roof(node, peaks) if peaks else ()),
            _number(node.first * 1e3, "{:.3f}"),
            _number(node.mean * 1e3, "{:.3f}"),
            _number(node.least * 1e3, "{:.3f}"),
            _number(node.disturbed, "{:.0f}"),
            _number(node.calls, "{:g}"),
            _number(node.start * 1e3, "{:.3f}"),
        ]
        for order, node in enumerate(profile.nodes)
    ]
    return _table(columns, rows)


def _roof(node: NodeCost, peaks: Peaks) -> tuple[str, str]:
    if not node.gflops or not node.intensity:
        return _number(None, ""), _cell("")
    return _number(node.gflops / peaks.attainable(node.intensity) * 100, "{:.0f}"), _cell(peaks.bound(node.intensity))


def _table(columns: Sequence[_Column], rows: Sequence[Sequence[str]]) -> str:
    kinds = {None: "", False: ' data-kind="text"', True: ' data-kind="number" class="number"'}
    head = "".join(f'<th scope="col"{kinds[number]}>{escape(name)}</th>' for name, number in columns)
    body = "\n".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    table = f'<table class="sortable"><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>'
    return f'<div class="scroll" tabindex="0">{table}</div>'


def _cell(text: str, kind: str = "") -> str:
    """Return a table cell with a text; with kind "long" or "long shapes" the text is wrapped, and scrolls if it still does not
    fit.
    """
    return f'<td class="{kind}"><div>{_text(text)}</div></td>' if kind else f"<td>{_text(text)}</td>"


def _number(value: float | None, shape: str, scale: float = 1.0) -> str:
    """Return a table cell with `value * scale` in the format `shape`; for None an empty one, which is sorted as the least."""
    if value is None:
        return '<td class="number" data-value="-1"></td>'
    return f'<td class="number" data-value="{value * scale!r}">{shape.format(value * scale)}</td>'


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
        f'<div class="scroll" tabindex="0"><svg viewBox="0 0 {_WIDTH:g} {height:g}" role="img" aria-label="nodes over time">'
        f"{''.join(boxes)}</svg></div>"
        f"<p>{whole * 1e3:.3f} ms from left to right; a box is a run of a node, and lies under the node that called it.</p>"
    )


def _colour(label: str) -> str:
    """Return the colour of an op as CSS, the same in every page."""
    return f"hsl({zlib.crc32(label.encode('utf-8', 'surrogatepass')) % 360} 60% 72%)"
