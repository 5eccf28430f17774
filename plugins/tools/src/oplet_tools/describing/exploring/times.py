"""Measures the times of a model's nodes, for `oplet explore`."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from oplet_tools.benchmarking.benchmark import Schedule, benchmark_model
from oplet_tools.running.values.notices import NoticeCallback, warn

if TYPE_CHECKING:
    from oplet import Delegate, PluginManager
    from oplet_tools.describing.exploring.explore import Times

__all__ = ["measure_nodes"]

#: The inferences that are profiled, after a warm-up.
_RUNS = 20


def measure_nodes(
    model: str | os.PathLike[str],
    delegates: Sequence[Delegate] = (),
    plugins: PluginManager | None = None,
    *,
    num_threads: int = 1,
    progress: Callable[[str, float], None] | None = None,
    notify: NoticeCallback = warn,
) -> Times:
    """Run a model on random values; return the seconds of each node by (subgraph, node), and the number of runs.

    A delegate's kernel counts as a node.

    Args:
        model: the .tflite file.
        plugins: the plugins that provide kernels; all installed ones by default.
        num_threads: threads that kernels may use.
        progress: called with the phase and its progress, 0 to 1.
        notify: called with a notice of each change to an input.

    Raises:
        OpletError: the model cannot be run.
    """
    result = benchmark_model(
        model,
        schedule=Schedule(num_runs=1, min_secs=0.0, profiled_runs=_RUNS),
        num_threads=num_threads,
        plugins=plugins,
        delegates=delegates,
        progress=progress,
        notify=notify,
    )
    seconds: dict[tuple[int, int], float] = defaultdict(float)
    for node in result.profile.nodes:
        seconds[node.subgraph, node.node] += node.seconds
    return dict(seconds), result.profile.runs
