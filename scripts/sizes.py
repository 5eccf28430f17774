"""How many lines the packages have, what a change makes of that, and how many they may have.

usage: python -m scripts.sizes

A budget is raised by hand, in the change that needs it, so that somebody sees it.
"""

from __future__ import annotations

from pathlib import Path

from scripts.changes import ROOT, lines_changed

__all__ = ["BUDGET", "lines", "table"]

#: The most lines of Python, comments and empty ones among them, that each package may have.
BUDGET = {
    "core": 25_690,
    "plugins/atan_op": 100,
    "plugins/beam_handler": 500,
    "plugins/build": 4_920,
    "plugins/builtin_ops": 23_060,
    "plugins/compiled_model": 2_160,
    "plugins/compiled_ops": 15_190,
    "plugins/coral_ops": 500,
    "plugins/example_delegate": 300,
    "plugins/flex_delegate": 2_060,
    "plugins/flex_ops": 14_940,
    "plugins/larq_ops": 900,
    "plugins/litert_delegate": 1_430,
    "plugins/litert_shim": 200,
    "plugins/lm": 1_390,
    "plugins/mediapipe_ops": 900,
    "plugins/model_explorer": 400,
    "plugins/native_ops": 3_140,
    "plugins/openvino_delegate": 2_140,
    "plugins/predictor": 3_690,
    "plugins/ray_batch": 500,
    "plugins/serve": 3_720,
    "plugins/signal_ops": 1_540,
    "plugins/testing": 2_170,
    "plugins/text_ops": 5_670,
    "plugins/tools": 22_390,
    "plugins/xla_delegate": 2_690,
}


def lines(folder: Path) -> int:
    """Return how many lines of Python a package has."""
    return sum(path.read_text("utf-8").count("\n") for path in (folder / "src").rglob("*.py"))


def table() -> list[str]:
    """Return a line for each package: its size, the change if it is known, and its budget."""
    changes = lines_changed()
    found = []
    for folder, budget in BUDGET.items():
        change = sum(count for path, count in changes.items() if path.startswith(f"{folder}/src/") and path.endswith(".py"))
        found.append(f"{folder:<26} {lines(ROOT / folder):>7,} lines {f'({change:+,})' if change else '':>9} of {budget:>7,}")
    return found


if __name__ == "__main__":
    print("\n".join(table()))
