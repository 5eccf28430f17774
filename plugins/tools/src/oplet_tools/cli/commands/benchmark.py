"""`oplet benchmark`: latency, memory use and profile of a model."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oplet_tools.benchmarking.page import apart, mebibytes, milliseconds, write_page
from oplet_tools.cli.settings import (
    Debug,
    Delegates,
    Inputs,
    Json,
    ModelFile,
    OpLibraries,
    PluginSwitches,
    Quiet,
    Raw,
    Signature,
    Wide,
    option,
    settings_of,
)

if TYPE_CHECKING:
    from oplet_tools.benchmarking.benchmark import Benchmark
    from oplet_tools.benchmarking.profile import NodeCost, OpCost
    from oplet_tools.benchmarking.profiling.against import Change, Comparison
    from oplet_tools.benchmarking.profiling.peaks import Peaks
    from oplet_tools.benchmarking.timings import Timings
    from oplet_tools.cli.console import Printer

__all__ = ["benchmark"]

_LONGEST_NAME = 60
#: The least runs that are profiled, unless fewer are asked for; and the most, within some seconds.
_PROFILED_RUNS, _PROFILED_MOST = 20, 100


def benchmark(
    context: typer.Context,
    model: ModelFile,
    inputs: Inputs = None,
    input_layer_shape: Annotated[
        list[str] | None, option(metavar="NAME:1,224,224,3", help="Another shape for an input. May be given several times.")
    ] = None,
    num_runs: Annotated[int, typer.Option(min=1, metavar="N", help="Least number of runs.")] = 50,
    min_secs: Annotated[float, typer.Option(min=0, metavar="S", help="Least seconds of the runs.")] = 1.0,
    max_secs: Annotated[float, typer.Option(min=0, metavar="S", help="Stop after this many seconds in any case.")] = 150.0,
    warmup_runs: Annotated[
        int,
        typer.Option(min=0, metavar="N", help="Least number of warm-up runs, which do not count; the first inference is one."),
    ] = 1,
    warmup_min_secs: Annotated[float, typer.Option(min=0, metavar="S", help="Least seconds of the warm-up.")] = 0.5,
    num_threads: Annotated[int, typer.Option(min=1, metavar="N", help="Threads that kernels, and BLAS, may use.")] = 1,
    delegate: Delegates = None,
    custom_op_library: OpLibraries = None,
    signature: Signature = None,
    compare: Annotated[
        list[str] | None,
        option(
            metavar="RIVAL",
            help="Alternate with another runtime: litert (with XNNPACK), litert-no-xnnpack or litert-reference. "
            "May be given several times.",
        ),
    ] = None,
    profile: Annotated[bool, typer.Option(help="Show which nodes the time goes to, in separate runs.")] = True,
    top: Annotated[int, typer.Option(min=0, metavar="N", help="Show the N costliest nodes.")] = 10,
    run_order: Annotated[bool, option("--run-order", help="Show every node, in order.")] = False,
    profile_html: Annotated[Path | None, option(metavar="FILE", help="Write the profile as a page for a browser.")] = None,
    trace: Annotated[Path | None, option(metavar="FILE", help="Write a trace, for ui.perfetto.dev or chrome://tracing.")] = None,
    roofline: Annotated[
        bool, option("--roofline", help="Measure the machine's peaks, too, and how near each node comes to them.")
    ] = False,
    against: Annotated[
        Path | None, option(metavar="FILE", help="Compare with an earlier benchmark, written with --json.")
    ] = None,
    litert_output: Annotated[
        bool,
        option(
            "--litert-output",
            help="Print the block of litert-benchmark, take its options too (--model, --num_runs, ...), and what it takes for granted.",
        ),
    ] = False,
    result_json: Annotated[
        Path | None, option(metavar="FILE", help="With --litert-output: write the results as litert-benchmark does.")
    ] = None,
    require_full_delegation: Annotated[
        bool, option("--require-full-delegation", help="Fail unless one delegate runs all nodes.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the random inputs.")] = 0,
    raw: Raw = False,
    quiet: Quiet = False,
    json: Json = False,
    wide: Wide = False,
    p: PluginSwitches = None,
    debug: Debug = False,
) -> None:
    """Measure how fast a model runs, what it takes of memory, and which nodes the time goes to."""
    settings = settings_of(context, p, debug)
    from oplet_tools.benchmarking.blas_threads import limit_blas_threads

    limit_blas_threads(num_threads)  # before anything imports numpy
    from oplet.toolkit import check_target
    from oplet_tools.benchmarking.benchmark import Schedule, benchmark_model, parse_shape
    from oplet_tools.cli.commands.tune import delegates_of
    from oplet_tools.cli.console import Printer, print_json
    from oplet_tools.cli.notices import NoticePrinter
    from oplet_tools.cli.progress import progress_bars

    if not profile and (profile_html or trace or run_order or roofline or against):
        raise typer.BadParameter("leaves nothing to write or show.", param_hint="--no-profile")
    if result_json is not None and not litert_output:
        raise typer.BadParameter("goes with --litert-output.", param_hint="--result-json")
    for file in filter(None, (profile_html, trace, result_json)):
        check_target(file)
    base = None
    if against is not None:  # before minutes go into a measurement
        from oplet_tools.benchmarking.profiling.against import compare_with, read_base
        from oplet_tools.running.many.identity import model_identity

        base = read_base(against, model_identity(model)["sha256"])
    plugins = settings.plugins(custom_op_library)
    delegates = delegates_of(model, delegate or (), plugins, num_threads)
    with progress_bars() as progress:
        result = benchmark_model(
            model,
            inputs or (),
            shapes=dict(map(parse_shape, input_layer_shape or ())),
            signature=signature,
            schedule=Schedule(
                warmup_runs=warmup_runs,
                warmup_min_secs=warmup_min_secs,
                num_runs=num_runs,
                min_secs=min_secs,
                max_secs=max_secs,
                profiled_runs=min(num_runs, _PROFILED_RUNS) if profile else 0,
                profiled_most=_PROFILED_MOST if profile and num_runs >= _PROFILED_RUNS else 0,
            ),
            seed=seed,
            num_threads=num_threads,
            plugins=plugins,
            delegates=delegates,
            compare=list(dict.fromkeys(compare or ())),
            progress=progress,
            raw=raw,
            notify=NoticePrinter(quiet),
            roofline=roofline,
        )
    if require_full_delegation or litert_output:
        _litert_output(result, litert_output, result_json, require_full_delegation)
    comparison = None if base is None else compare_with(base, result)
    if profile_html is not None:
        write_page(result, profile_html)
    if trace is not None:
        from oplet_tools.benchmarking.trace import trace_events, write_trace

        title = f"oplet {os.path.basename(result.model)}"
        write_trace(trace, trace_events(result.events, spans=result.spans, names=result.names, title=title))
    if json:
        print_json(_as_json(result, comparison))
    if json or litert_output:
        return
    printer = Printer(wide)
    _print(printer, result)
    if profile:
        _print_profile(printer, result, top, run_order)
    if comparison is not None:
        _print_comparison(printer, comparison, top)
    written = [str(path) for path in (profile_html, trace) if path is not None]
    if written:
        printer.line()
        printer.line(f"written to {' and '.join(written)}", "dim")


def _litert_output(result: Benchmark, wanted: bool, file: Path | None, fully: bool) -> None:
    """Print and write what litert-benchmark does; exit where nodes are left that no delegate runs and there should be none."""
    from oplet_tools.benchmarking.litert_output import is_fully_delegated, litert_block, litert_json

    if fully and not is_fully_delegated(result):
        from oplet_tools.cli.notices import say

        nodes = ", ".join(f"{name} runs {claimed} of {nodes} nodes" for name, claimed, nodes in result.delegated)
        say(f"{result.model} is not run by one delegate alone ({nodes or 'there is none: give --delegate'}).")
        raise typer.Exit(1)
    if wanted:
        typer.echo("\n".join(litert_block(litert_json(result))))
    if file is not None:
        from json import dumps

        from oplet import write_atomically

        write_atomically(file, dumps(litert_json(result), indent=2))


def _print(printer: Printer, result: Benchmark) -> None:
    printer.line(result.model, "bold")
    inputs = ", ".join(f"{name} {type}{list(shape)}" for name, (type, shape) in result.inputs.items())
    printer.line(f"inputs: {inputs or 'none'}", "dim")
    printer.line(f"threads: {result.num_threads}", "dim")
    for name, claimed, nodes in result.delegated:
        printer.line(f"{name} runs {claimed} of {nodes} nodes", "dim")
    if result.choice:
        printer.line(result.choice, "dim")
    start = [
        ("load", milliseconds(result.load)),
        ("allocate", milliseconds(result.allocate)),
        ("initialization, together", milliseconds(result.load + result.allocate)),
        ("first inference", milliseconds(result.first)),
    ]
    printer.table("start", ["", "ms#"], start)
    columns = ["", "runs#", "first#??", "average#", "std#", "min#", "median#", "90 %#?", "95 %#?", "99 %#?", "max#?"]
    rows = [("warm-up", *_row(result.warmup))] if result.warmup else []
    rows += [("oplet", *_row(result.runs))] + [(rival.name, *_row(rival.runs)) for rival in result.rivals]
    printer.table("inference, ms", columns, rows)
    if result.rivals:
        compared = [
            (
                f"oplet / {rival.name} {rival.version}",
                f"{rival.ratio.median:.2f}",
                f"{rival.ratio.low:.2f} to {rival.ratio.high:.2f}",
                f"{rival.ratio.min:.2f} to {rival.ratio.max:.2f}",
                milliseconds(rival.load),
                milliseconds(rival.allocate),
            )
            for rival in result.rivals
        ]
        columns = ["time, pair by pair", "median ratio#", "middle half#", "all#?", "its load ms#??", "its allocate ms#??"]
        printer.table("compared (below 1: oplet is faster)", columns, compared)
    memory = result.memory
    sizes = [
        ("model", memory.model),
        ("arena", memory.arena),
        ("resident, before the model", memory.resident_before),
        ("resident, allocated", memory.resident_allocated),
        ("resident, after the warm-up", memory.resident),
        ("peak of the process", memory.peak),
    ]
    printer.table("memory", ["", "MiB#"], [(name, mebibytes(size)) for name, size in sizes])


def _print_profile(printer: Printer, result: Benchmark, top: int, run_order: bool) -> None:
    profile, peaks = result.profile, result.peaks
    columns = [
        "node#",
        "op",
        "outputs~??",
        "start ms#????",
        "first ms#???",
        "ms#",
        "+-#?",
        "%#",
        "cumulative %#???",
        "calls#????",
    ]
    columns += ["disturbed#??", "MMAC#??", "MB#???", "GFLOP/s#?", "FLOP/byte#???"] + (
        ["of peak %#", "bound by?"] if peaks else []
    )
    if run_order:
        printer.table("nodes, in order", columns, [_node_row(node, peaks) for node in profile.nodes])
    if top:
        shown = profile.by_time[:top]
        title = f"nodes: the costliest {len(shown)} of {len(profile.nodes)}"
        printer.table(title, columns, [_node_row(node, peaks) for node in shown])
    columns = ["op", "nodes#", "calls#??", "ms#", "%#", "cumulative %#??", "MMAC#?", "GFLOP/s#?"]
    printer.table("kinds of ops", columns, [_op_row(op) for op in profile.ops])
    printer.line()
    printer.line(f"{profile.runs} profiled inferences; nodes took {milliseconds(profile.seconds)} ms of each", "dim")
    if result.is_profile_apart:
        printer.line(apart(result), "yellow")
    if profile.nodes:
        printer.line(
            "ms: median of the inferences in which nothing disturbed the node; +-: half of their middle half; nodes are ranked by "
            "the lower quartile, and those within a tenth of each other stand in the order in which they run",
            "dim",
        )
    if peaks:
        printer.line(f"peaks: {peaks.gflops:.1f} GFLOP/s (products of float32), {peaks.gbytes:.1f} GB/s (copying)", "dim")


def _node_row(node: NodeCost, peaks: Peaks | None) -> tuple[str, ...]:
    name = node.name if len(node.name) <= _LONGEST_NAME else f"{node.name[: _LONGEST_NAME - 3]}..."
    place = f"{node.subgraph}:{node.node}" if node.subgraph else str(node.node)
    times = (
        milliseconds(node.start),
        milliseconds(node.first),
        milliseconds(node.seconds),
        milliseconds((node.high - node.low) / 2),
    )
    shares = (_percent(node.share), _percent(node.cumulative), f"{node.calls:g}", str(node.disturbed))
    work = (_mega(node.macs), _mega(node.read + node.written), _decimal(node.gflops), _decimal(node.intensity))
    roof = _roof(node, peaks) if peaks else ()
    return place, node.label, name, *times, *shares, *work, *roof


def _roof(node: NodeCost, peaks: Peaks) -> tuple[str, str]:
    if not node.gflops or not node.intensity:
        return "", ""
    return f"{node.gflops / peaks.attainable(node.intensity) * 100:.0f}", peaks.bound(node.intensity)


def _op_row(op: OpCost) -> tuple[str, ...]:
    shares = (_percent(op.share), _percent(op.cumulative))
    return op.op, str(op.nodes), f"{op.calls:g}", milliseconds(op.seconds), *shares, _mega(op.macs), _decimal(op.gflops)


def _print_comparison(printer: Printer, comparison: Comparison, top: int) -> None:
    columns = ["base ms#", "ms#", "difference ms#?", "change %#", "verdict"]
    printer.table(f"against {comparison.file}", ["", *columns], [("inference", *_change_row(comparison.inference))])
    if top:
        shown = comparison.nodes[:top]
        rows = [(change.what, change.op, change.name[:_LONGEST_NAME], *_change_row(change)) for change in shown]
        title = f"nodes: the largest {len(shown)} of {len(comparison.nodes)} changes"
        printer.table(title, ["node#", "op", "outputs~?", *columns], rows)
    printer.table("kinds of ops", ["op", *columns], [(change.what, *_change_row(change)) for change in comparison.ops])
    printer.line()
    printer.line("faster, slower: the middle halves of the times do not overlap", "dim")
    for note in comparison.notes:
        printer.line(note, "yellow")


def _change_row(change: Change) -> tuple[str, ...]:
    times = ("" if seconds is None else milliseconds(seconds) for seconds in (change.base, change.now))
    part = "" if change.change is None else f"{change.change * 100:+.1f}"
    return *times, f"{change.difference * 1e3:+.3f}", part, change.verdict


def _mega(number: float | None) -> str:
    return "" if number is None else f"{number / 1e6:.2f}"


def _decimal(number: float | None) -> str:
    return "" if number is None else f"{number:.1f}"


def _row(timings: Timings) -> tuple[str, ...]:
    t = timings
    return str(t.count), *map(milliseconds, (t.first, t.mean, t.std, t.min, t.p50, t.p90, t.p95, t.p99, t.max))


def _percent(part: float) -> str:
    return f"{part * 100:.1f}"


def _as_json(result: Benchmark, comparison: Comparison | None) -> dict[str, Any]:
    described = asdict(result)
    for inner in ("events", "spans", "names"):
        del described[inner]
    described["inputs"] = {name: {"type": type, "shape": list(shape)} for name, (type, shape) in result.inputs.items()}
    described["delegated"] = [{"delegate": d, "nodes": claimed, "of": nodes} for d, claimed, nodes in result.delegated]
    del described["profile"]["by_time"]
    if comparison is not None:
        described["against"] = asdict(comparison)
    return described
