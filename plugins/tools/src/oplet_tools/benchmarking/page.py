"""The page of a benchmark: the facts of its runs, and the profile of its nodes, as HTML."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the command imports this before it limits the threads of BLAS
    from oplet_tools.benchmarking.benchmark import Benchmark

__all__ = ["apart", "mebibytes", "milliseconds", "write_page"]


def milliseconds(seconds: float) -> str:
    """Format seconds as text in milliseconds."""
    return f"{seconds * 1e3:.3f}"


def mebibytes(size: int | None) -> str:
    """Format a number of bytes as text in MiB; "unknown" for None."""
    return "unknown" if size is None else f"{size / 2**20:.2f}"


def apart(result: Benchmark) -> str:
    """Return the sentence that warns why shares of time in a profile differ from those of unprofiled inferences."""
    return (
        f"an inference without the profiler takes {milliseconds(result.runs.p50)} ms: it runs loops and neighbouring nodes as one, which the profiler "
        "takes apart, and looking at the clock takes time too, so that these are not its shares"
    )


def write_page(result: Benchmark, path: Path) -> None:
    """Write the HTML page of a benchmark with its profile to `path`."""
    from oplet import write_atomically
    from oplet_tools.benchmarking.profile_html import profile_page

    # The shortest profiled inference, which little can have disturbed.
    shown = min((span for span in result.spans if span.name == "inference"), key=lambda span: span.seconds)
    events = [event for event in result.events if shown.start <= event.start < shown.start + shown.seconds]
    inputs = ", ".join(f"{name} {type}{list(shape)}" for name, (type, shape) in result.inputs.items())
    runs, warmup, peaks = result.runs, result.warmup, result.peaks
    facts = [
        ("inputs", inputs),
        ("threads", str(result.num_threads)),
        *((name, f"{claimed} of {nodes} nodes") for name, claimed, nodes in result.delegated),
        (
            "load, allocate, first inference",
            f"{milliseconds(result.load)}, {milliseconds(result.allocate)}, {milliseconds(result.first)} ms",
        ),
        *([("warm-up", f"median {milliseconds(warmup.p50)} ms of {warmup.count}")] if warmup else []),
        (
            "inference",
            f"median {milliseconds(runs.p50)} ms of {runs.count}; middle half {milliseconds(runs.p25)} to {milliseconds(runs.p75)} ms",
        ),
        *((f"oplet / {rival.name}", f"{rival.ratio.median:.2f}") for rival in result.rivals),
        ("arena", f"{mebibytes(result.memory.arena)} MiB"),
        ("peak of the process", f"{mebibytes(result.memory.peak)} MiB"),
        ("profiled inferences", f"{result.profile.runs}; nodes took {milliseconds(result.profile.seconds)} ms of each"),
        *([("mind", apart(result))] if result.is_profile_apart else []),
        *([("peaks of the machine", f"{peaks.gflops:.1f} GFLOP/s, {peaks.gbytes:.1f} GB/s")] if peaks else []),
    ]
    title = f"oplet benchmark: {os.path.basename(result.model)}"
    write_atomically(path, profile_page(title, facts, result.profile, events, result.names, peaks))
