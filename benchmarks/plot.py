"""A plot of the ratios; needs matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["plot_ratios"]

_SHOWN = (
    "oplet-numpy / litert",
    "oplet-numpy / litert-xnnpack",
    "oplet-compiled / litert-xnnpack",
    "oplet-numpy / litert-reference",
)


def plot_ratios(models: Mapping[str, Mapping[str, Any]], path: Path) -> bool:
    """Plot each model's ratios with their interquartile ranges.

    Args:
        models: `data["models"]` of the latency section.
        path: the .png file.

    Returns:
        False if matplotlib is not installed.
    """
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = list(models)
    figure, axes = pyplot.subplots(figsize=(10, 2 + 0.5 * len(names)), layout="constrained")
    step = 0.8 / len(_SHOWN)
    for place, pair in enumerate(_SHOWN):
        rows = [(row, models[name]["ratios"][pair]) for row, name in enumerate(names) if pair in models[name]["ratios"]]
        if not rows:
            continue
        medians = [ratio[0] for _, ratio in rows]
        spread = [[ratio[0] - ratio[1] for _, ratio in rows], [ratio[2] - ratio[0] for _, ratio in rows]]
        heights = [row + (place - (len(_SHOWN) - 1) / 2) * step for row, _ in rows]
        axes.errorbar(medians, heights, xerr=spread, fmt="o", markersize=5, capsize=3, label=pair)
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel("time over time, pair by pair: median and middle half; left of 1 the first is faster")
    axes.grid(axis="x", which="both", alpha=0.3)
    figure.legend(loc="outside upper center", ncols=2)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return True
