"""Report of several campaigns: their counts added up, as Markdown tables."""

from __future__ import annotations

from collections import Counter
from typing import Any

__all__ = ["report_of"]

_FINDINGS = {
    "crash": "**the process died**",
    "hang": "**took longer than 40 s**",
    "escaped": "**an exception outside `oplet.errors`**",
    "memory": "**grew by more than 200 MB (documented limits), 300 MB (default)**",
    "slow": "**a call took more than twice `max_seconds`**",
    "wrong": "**integers that are not numpy's**",
    "warned": "**a warning of numpy's got out**",
    "accident": "refused by accident: numpy stumbled where a check should have been",
    "differs": "values that differ from numpy's, or refused by one of the two only",
}


def report_of(states: list[dict[str, Any]]) -> str:
    """A table with a row for each outcome and a column for each engine, and a list of findings with the first numbers."""
    counts: Counter[tuple[str, str]] = Counter()  # by outcome and engine
    limits: Counter[str] = Counter()
    times: dict[str, float] = {}
    for state in states:
        for engine, seconds in state["times"].items():
            times[engine] = times.get(engine, 0.0) + seconds
        for key, count in state["counts"].items():
            engine, limit, kind, stage, *error = key.split()
            limits[limit] += count
            counts[_row(kind, stage, " ".join(error)), engine] += count
    engines = [name for name in times if any(engine == name for _, engine in counts)]
    total = Counter[str]()
    for (_, engine), count in counts.items():
        total[engine] += count
    minutes = sum(times.values()) / 60
    held = ", ".join(f"{count:,} with the {limit} limits" for limit, count in sorted(limits.items(), reverse=True))
    lines = [f"{sum(total.values()):,} models in {minutes:.0f} minutes of one core; {held}.", ""]
    lines += [f"| what | where | {' | '.join(engines)} | all |", f"|---|---|{'---:|' * (len(engines) + 1)}"]
    rows = Counter[str]()
    for (row, _), count in counts.items():
        rows[row] += count
    refused = [row for row, _ in rows.most_common() if row.startswith("refused with")]
    for row in ("ran to the end | ", *refused, *(f"{words} | " for words in _FINDINGS.values())):
        each = " | ".join(f"{counts[row, engine]:,}" for engine in engines)
        lines.append(f"| {row} | {each} | {rows[row]:,} |")
    lines.append(f"| all | | {' | '.join(f'{total[engine]:,}' for engine in engines)} | {sum(total.values()):,} |")
    rates = " | ".join(f"{total[engine] / max(times[engine], 1.0):.0f}" for engine in engines)
    lines.append(f"| models a second | | {rates} | {sum(total.values()) / max(minutes * 60, 1.0):.0f} |")
    return "\n".join([*lines, *_found(states)])


def _row(kind: str, stage: str, error: str) -> str:
    if kind == "ok":
        return "ran to the end | "
    return f"refused with `{error}` | {stage}" if kind == "refused" else f"{_FINDINGS[kind]} | "


def _found(states: list[dict[str, Any]]) -> list[str]:
    found: dict[str, tuple[int, list[Any]]] = {}
    for state in states:
        for key, finding in state["findings"].items():
            count, examples = found.get(key, (0, []))
            found[key] = count + finding["count"], examples + finding["examples"]
    order = list(_FINDINGS)
    lines = []
    for key, (count, examples) in sorted(found.items(), key=lambda item: (order.index(item[0].split()[1]), -item[1][0])):
        message = examples[0][1]
        numbers = " ".join(str(example[0]) for example in examples[:5])
        lines.append(f"- {count} times {key}: {numbers}: {message.splitlines()[0][:200] if message else ''}")
    return ["", *lines] if lines else []
