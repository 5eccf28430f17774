"""The report of `oplet compare`, as tables or JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from oplet.texts import counted

if TYPE_CHECKING:
    from oplet_tools.cli.console import Printer
    from oplet_tools.comparing.bisect import Bisection
    from oplet_tools.comparing.compare import ComparedTensor, Comparison
    from oplet_tools.tuning.differences import Difference
    from oplet_tools.tuning.node_comparison import NodeDifference

__all__ = ["as_json", "print_report"]

_LONGEST_NAME = 36
#: Most rows in the tables of departing tensors and of growing differences.
_ROWS = 20
_COLUMNS = [
    "", "name", "type?", "shape??", "worst at????", "got#???", "wanted#???", "error#", "allowed#", "differing#??", "tolerance??", ""
]  # fmt: skip
#: Factor by which a difference must have grown since the last row to get a row of its own.
_GROWTH = 2.0


def print_report(printer: Printer, result: Comparison, layers: bool, seed: int) -> None:
    """Print the result of a comparison, with `layers` also for tensors at partition boundaries; `seed` is that of the random inputs."""
    printer.line(_headline(result), "bold" if result.trivial else "")
    seeds = f"{seed}" if result.runs == 1 else f"{seed} to {seed + result.runs - 1}"
    sources = [f"{name} from {source}" if source != "random" else f"{name} random" for name, source in result.sources.items()]
    of_seed = f", seed {seeds}" if "random" in result.sources.values() else ""
    printer.line(f"{counted(result.runs, 'run')}; {', '.join(sources) or 'no inputs'}{of_seed}", "dim")
    printer.line(f"tolerance: {result.tolerance or f'by type, of a model with {result.kind.value}'}", "dim")
    printer.table("outputs", _COLUMNS, [_row(layer.name or f"tensor {layer.tensor}", layer) for layer in result.outputs])
    if result.alone:
        _print_alone(printer, result)
    if layers and not result.trivial:
        rows = [(*_row(layer.name or f"tensor {layer.tensor}", layer), _border(layer)) for layer in result.layers]
        printer.table("borders of partitions", [*_COLUMNS, "border"], rows)
        named = [f"{number}: {_nodes(subgraph, nodes)}" for number, (subgraph, nodes) in enumerate(result.partitions)]
        printer.line()
        printer.line(f"partitions: {'; '.join(named)}", "dim")
    if result.bisection is not None:
        _print_bisection(printer, result.bisection, result.passed)
    printer.line()
    _print_verdict(printer, result)


def _headline(result: Comparison) -> str:
    chosen = f"{result.choice}. " if result.choice else ""
    if result.trivial and result.delegated:
        return (
            f"{chosen}The delegate claims none of the model's nodes ({result.nodes}), nothing was delegated: the model was compared "
            "with itself."
        )
    if result.trivial:
        return f"{chosen}Nothing was delegated: the model was compared with itself; give --delegate NAME or --with litert."
    beside = f", compared with {result.reference}" if result.reference else ""
    if result.delegated:
        claimed = sum(len(nodes) for _, nodes in result.partitions)
        parts = counted(len(result.partitions), "partition")
        return f"{chosen}The delegate runs {claimed} of {counted(result.nodes, 'node')} in {parts}{beside}."
    if result.reference:
        return f"{chosen}{counted(result.nodes, 'node')} run without a delegate{beside}."
    return f"{chosen}Other kernels than the built-in ones run {result.others} of {counted(result.nodes, 'node')}."


def _print_alone(printer: Printer, result: Comparison) -> None:
    departing = result.departing
    what = "each node by itself" if result.level == "nodes" else "each partition"
    printer.line()
    judged = counted(len(result.alone), "tensor")
    if not departing:
        worst = max(result.alone, key=lambda entry: entry.difference.max_part)
        near = f"; the largest error is {_error(worst.difference, worst.type)} at {worst}" if worst.difference.differing else ""
        printer.line(f"{what} on the same values: {judged}, all pass{near}", "dim")
        return
    printer.table(f"{what} on the same values: {len(departing)} of {judged} depart", _COLUMNS, _entries(departing[:_ROWS]))
    if len(departing) > _ROWS:
        printer.line(f"... and {len(departing) - _ROWS} more", "dim")


def _entries(entries: Sequence[NodeDifference]) -> list[tuple[str, ...]]:
    return [_row(f"{entry}: {_short(entry.name)}", entry) for entry in entries]


def _print_bisection(printer: Printer, found: Bisection, passed: bool) -> None:
    printer.line()
    compared = f"{counted(found.judged, 'tensor')} compared on the same values"
    if found.first is not None and found.how == "alone":
        difference = found.first.difference
        printer.line(f"first to depart: {found.first}, tensor '{_short(found.first.name)}'", "bold")
        printer.line(f"{_worst_text(difference, found.first.type)} ({compared})")
    elif found.first is not None:
        printer.line(f"first to depart: {found.first}, in one partition with the nodes before it; by itself it passes", "bold")
    elif found.how == "gradual":
        printer.line(f"no node departs by itself ({compared}); the differences add up:", "bold")
    else:
        printer.line(f"no node departs ({compared})")
    if not found.complete:
        printer.line("Some nodes could not be run by themselves: a kernel runs their subgraph, or takes them only with others.")
    if found.how:
        printer.table("how it grows", ["node", "tensor?", "by itself#", "with all before#"], _growth(found))


def _growth(found: Bisection) -> list[tuple[str, ...]]:
    """Return table rows: tensors at which the difference grew by a factor of `_GROWTH`, and the first beyond the tolerance."""
    rows: list[tuple[str, ...]] = []
    height = 0.0
    for step in found.growth:
        part = step.together.difference.max_part
        own = "" if step.entry is None else f"{step.entry.difference.max_part:.2g}"
        first = found.first is not None and (step.together.node, step.together.subgraph) == (
            found.first.node,
            found.first.subgraph,
        )
        if first or (part > _GROWTH * height and part > 0):
            rows.append((str(step.together), _short(step.together.name), own, f"{part:.2g}"))
            height = max(height, part)
    return rows if len(rows) <= _ROWS else [*rows[: _ROWS // 2], *rows[-_ROWS // 2 :]]


def _print_verdict(printer: Printer, result: Comparison) -> None:
    at = result.tolerance or "the tolerances of their types"
    if result.passed:
        printer.line("nothing was compared" if result.trivial else f"pass at {at}", "bold" if result.trivial else "bold green")
        return
    failed = [layer for layer in result.outputs if not layer.difference.passed]
    names = [_short(layer.name or f"tensor {layer.tensor}") for layer in failed] or [str(entry) for entry in result.departing]
    shown = list(dict.fromkeys(names))
    more = f" and {len(shown) - _ROWS} more" if len(shown) > _ROWS else ""
    printer.line(f"FAIL at {at}: {', '.join(shown[:_ROWS])}{more}", "bold red")
    for layer in failed:
        if layer.difference.why:
            printer.line(f"{_short(layer.name)}: {layer.difference.why}")
    for entry in result.departing[:_ROWS]:
        if entry.difference.why:
            printer.line(f"{entry}: {entry.difference.why}")


def _row(name: str, entry: ComparedTensor | NodeDifference) -> tuple[str, ...]:
    d = entry.difference
    note = getattr(entry, "note", "") or d.why
    if d.nonfinite:
        note = f"{d.nonfinite} NaN or infinite, {d.nonfinite_differing} of them differ" + (f"; {note}" if note else "")
    described = ("ok" if d.passed else "FAIL", name if len(name) <= 2 * _LONGEST_NAME else _short(name), entry.type)
    where = ("", "", "") if d.worst is None else (str(list(d.worst.index)), _value(d.worst.got), _value(d.worst.wanted))
    differing = f"{d.differing} of {d.values}" if d.values else ""
    return (
        *described,
        str(list(entry.shape)),
        *where,
        _error(d, entry.type),
        _allowed(d, entry.type),
        differing,
        d.tolerance,
        note,
    )


def _error(d: Difference, type: str) -> str:
    if d.worst is None or type in ("string", "bool") or math.isinf(d.worst.units):
        return "" if d.differing else "0"
    if "int" in type:
        return counted(int(d.max_abs), "step")
    return f"{d.worst.units:.2g} of {d.scale:.3g}" if d.scale else f"{d.worst.units:.2g}"


def _allowed(d: Difference, type: str) -> str:
    if d.allowed is None or type in ("string", "bool"):
        return ""
    return f"{d.allowed:.3g} steps" if "int" in type else f"{d.allowed:.2g}"


def _worst_text(d: Difference, type: str) -> str:
    if d.worst is None:
        return d.why
    told = f"worst at {list(d.worst.index)}: {_value(d.worst.got)} for {_value(d.worst.wanted)}, {_error(d, type)}"
    return f"{told}; {d.why}" if d.why else told


def _value(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)[:_LONGEST_NAME]


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 3]}..."


def _border(layer: ComparedTensor) -> str:
    parts = [f"out of {layer.written_by}"] if layer.written_by >= 0 else []
    return ", ".join(parts + [f"into {number}" for number in layer.read_by])


def _nodes(subgraph: int, nodes: Sequence[int]) -> str:
    listed = ", ".join(map(str, nodes))
    return f"nodes {listed}" + (f" of subgraph {subgraph}" if subgraph else "")


def as_json(result: Comparison, layers: bool) -> dict[str, Any]:
    """Return the result of a comparison, with tensors at boundaries if `layers`, for JSON: NaN and infinity become texts."""
    described: dict[str, Any] = {
        "passed": result.passed,
        "trivial": result.trivial,
        "delegated": result.delegated,
        "choice": result.choice,
        "reference": result.reference,
        "tolerance": result.tolerance,
        "kind": result.kind.name.lower(),
        "runs": result.runs,
        "inputs": result.sources,
        "nodes": result.nodes,
        "other_kernels": result.others,
        "partitions": [{"subgraph": subgraph, "nodes": nodes} for subgraph, nodes in result.partitions],
        "outputs": [_flat(layer, "written_by", "read_by") for layer in result.outputs],
        "level": result.level,
        "departing": [_flat(entry) for entry in result.departing],
        "judged": len(result.alone),
    }
    if layers:
        described["layers"] = [_flat(layer) for layer in result.layers]
    if result.bisection is not None:
        found = result.bisection
        described["bisection"] = {
            "how": found.how,
            "first": None if found.first is None else _flat(found.first),
            "judged": found.judged,
            "complete": found.complete,
            "growth": [
                {
                    "subgraph": step.together.subgraph,
                    "node": step.together.node,
                    "op": step.together.op,
                    "tensor": step.together.tensor,
                    "by_itself": None if step.entry is None else _plain(step.entry.difference.max_part),
                    "with_all_before": _plain(step.together.difference.max_part),
                }
                for step in found.growth
            ],
        }
    return described


def _flat(entry: ComparedTensor | NodeDifference, *without: str) -> dict[str, Any]:
    flat = asdict(entry)
    flat |= flat.pop("difference")
    flat["gain"] = entry.difference.gain
    del flat["sums"]
    return {key: _plain(value) for key, value in flat.items() if key not in without}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
