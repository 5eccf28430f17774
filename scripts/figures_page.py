"""Texts of the figures for the pages, and the page docs/figures.md."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = ["FIGURES", "figures_page"]

Figures = Mapping[str, Any]

_WHOLE = "oplet-builtin-ops"
#: The runners of `benchmarks/starting.py`, with their descriptions.
_RUNNERS = {
    "numpy": "`import numpy`, nothing else",
    "pyz": "the program of `oplet build`",
    "oplet": "oplet with oplet-builtin-ops",
    "litert": "ai-edge-litert",
}


def _kb(size: float) -> str:
    return f"{size / 1000:.1f}" if size < 9950 else f"{size / 1000:.0f}"


def _grid(columns: Sequence[str], rows: Sequence[Sequence[object]], right: int = 1) -> str:
    """A Markdown table whose columns from `right` on are numbers."""
    rule = ["---" if number < right else "---:" for number in range(len(columns))]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in (columns, rule, *rows))


def _wheel_table(figures: Figures) -> str:
    sizes = figures["sizes"]
    whole = sizes["wheels"][_WHOLE]
    rows = [
        (name, f"{b['bytes']:,}", f"{b['bytes'] / whole:.1%}", f"{b['bytes'] - b['licences']:,}")
        for name, b in sizes["builds"].items()
    ]
    return f"\n\n{_grid(['model', 'bytes', f'of {_WHOLE}', 'without the licence'], rows)}\n\n"


def _report(kind: str) -> Callable[[Figures], str]:
    def told(figures: Figures) -> str:
        rows = figures["times"]["builds"][kind]["rows"]
        head = ("", "installed", "built", "built / installed")
        widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
        lines = [
            "  ".join(
                cell.rjust(width) if number else cell.ljust(width)
                for number, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in (head, *rows)
        ]
        lines.insert(1, "─" * len(lines[0]))
        return "\n\n```text\n" + "\n".join(line.rstrip() for line in lines) + "\n```\n\n"

    return told


def _median(models: Mapping[str, Sequence[float]]) -> str:
    return f"{statistics.median(ratio[0] for ratio in models.values()):.2f}"


def _half(models: Mapping[str, Sequence[float]]) -> str:
    """Between which ratios the middle half of the models lies."""
    low, _, high = statistics.quantiles((ratio[0] for ratio in models.values()), n=4)
    return f"{low:.1f} to {high:.1f}"


def _typical(pair: str) -> Callable[[Figures], str]:
    """The median over models, which a single outlier does not move."""
    return lambda figures: _median(figures["speed"]["models"][pair])


def _openvino_table(figures: Figures) -> str:
    models = figures["speed"]["models"]["openvino / litert-xnnpack"]
    rows = [(name, f"{median:.2f}", f"{low:.2f} to {high:.2f}") for name, (median, low, high) in sorted(models.items())]
    return f"\n\n{_grid(['model', 'time / LiteRT', 'middle half of the rounds'], rows)}\n\n"


def _whole(figures: Figures) -> int:
    return int(figures["sizes"]["wheels"][_WHOLE])


#: The texts of figures by the names that the pages use.
FIGURES: Mapping[str, Callable[[Figures], str]] = {
    "build-kb": lambda f: f"{_kb(f['sizes']['builds']['float32']['bytes'])} kB",
    "whole-kb": lambda f: f"{_kb(_whole(f))} kB",
    "whole-bytes": lambda f: f"{_whole(f):,}",
    "licence-kb": lambda f: f"{_kb(f['sizes']['builds']['float32']['licences'])} kB",
    "frame-kb": lambda f: f"{_kb(f['sizes']['builds']['float32']['frame'])} kB",
    "program-kb": lambda f: f"{_kb(f['sizes']['programs']['float32']['bytecode'])} kB",
    "no-bytecode-part": lambda f: (
        f"{f['sizes']['programs']['float32']['no_bytecode'] / f['sizes']['programs']['float32']['bytecode']:.0%}"
    ),
    "wheel-table": _wheel_table,
    "program-report": _report("program"),
    "wheel-report": _report("wheel"),
    "numpy-by-litert": _typical("oplet-numpy / litert"),
    "compiled-by-xnnpack": _typical("oplet-compiled / litert-xnnpack"),
    "auto-by-xnnpack": _typical("auto / litert-xnnpack"),
    "numpy-by-xnnpack": lambda f: _median(f["plain"]["models"]),
    "numpy-by-xnnpack-half": lambda f: _half(f["plain"]["models"]),
    "plain-models": lambda f: str(len(f["plain"]["models"])),
    "speed-models": lambda f: str(len({name for models in f["speed"]["models"].values() for name in models})),
    "openvino-by-xnnpack": _typical("openvino / litert-xnnpack"),
    "openvino-table": _openvino_table,
}


def figures_page(figures: Figures) -> str:
    """The text of docs/figures.md."""
    sizes, times, speed, plain = figures["sizes"], figures["times"], figures["speed"], figures["plain"]
    parts = [
        "# Figures",
        "Made by `python -m scripts.figures`; pages take theirs from the same file, `figures.json`. Times are of runs that take turns: "
        "believe the ratios, and measure on your own machine with `python -m benchmarks`.",
        "## Sizes",
        _circumstances(sizes),
        _grid(["wheel", "bytes"], [(name, f"{size:,}") for name, size in sizes["wheels"].items()]),
        "Builds for the `hello_world` models of tflite-micro (three fully connected layers), as a wheel of kernels, and as a program of one "
        "file with the model, with compiled modules and without:",
        _grid(
            ["model", "wheel", "program", "without compiled modules"],
            [
                (
                    name,
                    f"{build['bytes']:,}",
                    f"{sizes['programs'][name]['bytecode']:,}",
                    f"{sizes['programs'][name]['no_bytecode']:,}",
                )
                for name, build in sizes["builds"].items()
            ],
        ),
        "## Builds and starts",
        _circumstances(times),
        "What `oplet build` reports for the float32 model, as a wheel of kernels:",
        _report("wheel")(figures).strip(),
        times["builds"]["wheel"]["compared"].capitalize(),
        "As a program of one file:",
        _report("program")(figures).strip(),
        times["builds"]["program"]["compared"].capitalize(),
        "From the start of a process to the model's answer:",
        _grid(
            ["runner", "ms", "/ ai-edge-litert", "/ oplet"],
            [
                (_RUNNERS[runner], each["ms"], f"{each['by_litert']:.2f}", f"{each['by_oplet']:.2f}")
                for runner, each in times["starts"].items()
            ],
        ),
        "## Speed as installed",
        _circumstances(plain),
        "What `pip install` of README's first line gives, the numpy kernels alone, beside LiteRT as it comes, with XNNPACK: a thread's time of the "
        f"processor in a run by the other's, medians of {plain['rounds']} rounds that take turns; below 1 oplet is faster.",
        _grid(
            ["model", "oplet-numpy / litert-xnnpack"],
            [
                *((name, _ratio(ratio)) for name, ratio in sorted(plain["models"].items())),
                ("the median", _median(plain["models"])),
            ],
        ),
        "## Speed",
        _circumstances(speed),
        f"Time of a run on one thread by that of another runner, medians of {speed['rounds']} rounds in one process; below 1 the first is faster. "
        '`litert` is LiteRT without XNNPACK, `litert-xnnpack` LiteRT as it comes, `auto` the choice of `experimental_delegates="auto"` among '
        "all that is installed.",
        _speed_table(speed),
    ]
    return "\n\n".join(parts) + "\n"


def _circumstances(told: Figures) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in told["versions"].items())
    busy = f", which had {told['load']} processes to run" if told["load"] >= 0 else ""
    return f"Measured on {told['date']}: {told['machine']}{busy}; Python {told['python']}, {versions}."


def _speed_table(speed: Figures) -> str:
    pairs = list(speed["models"])
    names = sorted({name for models in speed["models"].values() for name in models})
    rows = [[name, *(_ratio(speed["models"][pair].get(name)) for pair in pairs)] for name in names]
    rows.append(["the median", *(_median(speed["models"][pair]) if speed["models"][pair] else "-" for pair in pairs)])
    return _grid(["model", *pairs], rows)


def _ratio(ratio: Sequence[float] | None) -> str:
    return f"{ratio[0]:.2f} ({ratio[1]:.2f} to {ratio[2]:.2f})" if ratio else "-"
