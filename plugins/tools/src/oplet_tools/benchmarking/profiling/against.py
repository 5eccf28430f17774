"""Comparison of a benchmark with an earlier one of the same model, which `oplet benchmark --json` wrote."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oplet.errors import OpletError
from oplet.texts import shown

if TYPE_CHECKING:
    from oplet_tools.benchmarking.benchmark import Benchmark

__all__ = ["Base", "BaseError", "Change", "Comparison", "compare_with", "read_base"]


class BaseError(OpletError, ValueError):
    """A file to compare with is not the JSON of a benchmark of the same model."""


@dataclass(frozen=True)
class Change:
    """A change of times, in seconds."""

    what: str  #: The node: "3", or "1:3" for node 3 of subgraph 1; the kind of op; or "inference".
    op: str  #: The op of a node, else "".
    name: str  #: Names of the tensors that a node writes.
    base: float | None  #: The median of the earlier benchmark; None where the earlier one has no such node.
    now: float | None  #: The median of the new benchmark; None where the new one has no such node.
    change: float | None  #: The difference divided by the earlier median; None where one is missing or zero.
    #: "faster" or "slower" where the middle halves of the times do not overlap, "new" or "gone" where one is missing, else "".
    verdict: str

    @property
    def difference(self) -> float:
        """Seconds by which the new median is above the earlier one; a missing median counts as 0."""
        return (self.now or 0.0) - (self.base or 0.0)


@dataclass(frozen=True)
class Comparison:
    """The comparison of two benchmarks."""

    file: str  #: The file of the earlier one.
    inference: Change  #: The change of the whole inference.
    nodes: list[Change]  #: The changes of the nodes, the largest first.
    ops: list[Change]  #: The changes of the kinds of ops, the largest first.
    notes: list[str]  #: Sentences on other differences: threads, delegates, inputs.


#: Of a median and the quartiles.
_Times = tuple[float, float, float]
_Row = tuple[str, str, _Times]


@dataclass(frozen=True)
class Base:
    """An earlier benchmark, reduced to the data for a comparison."""

    file: str
    sha256: str  #: The digest of its model.
    inference: _Times  #: Median and quartiles of an inference.
    #: Label, names, median and quartiles of each node, by its place ("3", or "1:3" in subgraph 1) and label.
    nodes: dict[tuple[str, str], _Row]
    ops: dict[tuple[str, str], _Row]  #: The same for each kind of op, by its label.
    #: Settings that should be the same in both benchmarks, by name: threads, delegates, input shapes.
    circumstances: dict[str, Any]


def read_base(path: str | os.PathLike[str], sha256: str) -> Base:
    """Read the JSON of an earlier benchmark.

    Args:
        path: the file.
        sha256: the digest of the model that is benchmarked now.

    Raises:
        BaseError: the file is no such JSON, or is of another model, or has no profile.
        OSError: the file cannot be read.
    """
    file = os.fspath(path)
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
        given = data["model_sha256"]
        base = _base(file, data) if isinstance(given, str) else None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        base = None
    if base is None:
        raise BaseError(
            f"'{shown(file)}' is not a benchmark to compare with; write one with `oplet benchmark MODEL --json > base.json`."
        )
    if base.sha256 != sha256:
        model = shown(os.path.basename(str(data.get("model"))))
        raise BaseError(f"'{shown(file)}' is a benchmark of another model, '{model}'; compare benchmarks of the same file.")
    if not base.nodes:
        raise BaseError(f"'{shown(file)}' has no profile to compare with; write it without --no-profile.")
    return base


def _base(file: str, data: Mapping[str, Any]) -> Base:
    nodes = {
        (_place(int(node["subgraph"]), int(node["node"])), str(node["label"])): (
            str(node["label"]),
            str(node["name"]),
            _times(node),
        )
        for node in data["profile"]["nodes"]
    }
    ops = {(str(op["op"]), ""): ("", "", _times(op)) for op in data["profile"]["ops"]}
    runs = data["runs"]
    inference = _numbers(runs["p50"], runs["p25"], runs["p75"])
    return Base(file, data["model_sha256"], inference, nodes, ops, _circumstances(data))


def _times(entry: Mapping[str, Any]) -> _Times:
    return _numbers(entry["seconds"], entry["low"], entry["high"])


def _numbers(*values: Any) -> _Times:
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
            raise ValueError(value)
    median, low, high = map(float, values)
    return median, low, high


def _circumstances(data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "threads": data["num_threads"],
        "delegates": [str(delegate["delegate"]) for delegate in data["delegated"]],
        "inputs": {name: list(given["shape"]) for name, given in data["inputs"].items()},
    }


def _place(subgraph: int, node: int) -> str:
    return f"{subgraph}:{node}" if subgraph else str(node)


def compare_with(base: Base, now: Benchmark) -> Comparison:
    """Compare a benchmark with an earlier one: the inference, the nodes and the kinds of ops."""
    runs, profile = now.runs, now.profile
    nodes = {
        (_place(node.subgraph, node.node), node.label): (node.label, node.name, (node.seconds, node.low, node.high))
        for node in profile.nodes
    }
    ops = {(op.op, ""): ("", "", (op.seconds, op.low, op.high)) for op in profile.ops}
    mine = {
        "threads": now.num_threads,
        "delegates": [name for name, _, _ in now.delegated],
        "inputs": {name: list(shape) for name, (_, shape) in now.inputs.items()},
    }
    notes = [
        f"other {what}: {_words(base.circumstances[what])} before, {_words(mine[what])} now"
        for what in mine
        if base.circumstances[what] != mine[what]
    ]
    return Comparison(
        base.file,
        _change("inference", "", "", base.inference, (runs.p50, runs.p25, runs.p75)),
        _changes(base.nodes, nodes),
        _changes(base.ops, ops),
        notes,
    )


def _words(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {shape}" for name, shape in value.items()) or "none"
    return (", ".join(map(str, value)) or "none") if isinstance(value, list) else str(value)


def _changes(base: Mapping[tuple[str, str], _Row], now: Mapping[tuple[str, str], _Row]) -> list[Change]:
    def change(key: tuple[str, str]) -> Change:
        before, after = base.get(key), now.get(key)
        op, name, _ = after or before or ("", "", (0.0, 0.0, 0.0))
        return _change(key[0], op, name, before and before[2], after and after[2])

    return _largest(change(key) for key in dict.fromkeys([*now, *base]))


def _largest(changes: Iterable[Change]) -> list[Change]:
    """Sort the changes: first those with a verdict, then the others, each group by the size of the difference, largest first."""
    return sorted(changes, key=lambda change: (not change.verdict, -abs(change.difference)))


def _change(what: str, op: str, name: str, base: Sequence[float] | None, now: Sequence[float] | None) -> Change:
    if base is None or now is None:
        verdict = "new" if base is None else "gone"
        before, after = (None if times is None else times[0] for times in (base, now))
        return Change(what, op, name, before, after, None, verdict)
    verdict = "slower" if now[1] > base[2] else "faster" if now[2] < base[1] else ""
    return Change(what, op, name, base[0], now[0], now[0] / base[0] - 1 if base[0] else None, verdict)
