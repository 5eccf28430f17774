"""`oplet benchmark`: latency, memory use and profile of a model."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oplet.cli.settings import (
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
    settings_of,
)

if TYPE_CHECKING:
    from oplet.cli.console import Printer
    from oplet.tools.benchmarking.benchmark import Benchmark
    from oplet.tools.benchmarking.profile import NodeCost, Profile
    from oplet.tools.benchmarking.timings import Timings

__all__ = ["benchmark"]

_LONGEST_NAME = 60
_PROFILED_RUNS = 20


def benchmark(
    context: typer.Context,
    model: ModelFile,
    inputs: Inputs = None,
    input_layer_shape: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME:1,224,224,3", help="Another shape for an input. May be given several times.", show_default=False
        ),
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
        typer.Option(
            metavar="RIVAL",
            help="Alternate with another runtime: litert (with XNNPACK), litert-no-xnnpack or litert-reference. "
            "May be given several times.",
            show_default=False,
        ),
    ] = None,
    profile: Annotated[bool, typer.Option(help="Show which nodes the time goes to, in separate runs.")] = True,
    top: Annotated[int, typer.Option(min=0, metavar="N", help="Show the N costliest nodes.")] = 10,
    run_order: Annotated[bool, typer.Option("--run-order", help="Show every node, in order.", show_default=False)] = False,
    profile_html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the profile as a page for a browser.", show_default=False)
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a trace, for ui.perfetto.dev or chrome://tracing.", show_default=False),
    ] = None,
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
    from oplet.tools.benchmarking.blas_threads import limit_blas_threads

    limit_blas_threads(num_threads)  # before anything imports numpy
    from oplet.cli.commands.tune import delegates_of
    from oplet.cli.console import Printer, print_json
    from oplet.cli.notices import NoticePrinter
    from oplet.cli.progress import progress_bars
    from oplet.model.files.atomic_write import check_target
    from oplet.tools.benchmarking.benchmark import Schedule, benchmark_model, parse_shape

    if not profile and (profile_html or trace or run_order):
        raise typer.BadParameter("leaves nothing to write or show.", param_hint="--no-profile")
    for file in filter(None, (profile_html, trace)):
        check_target(file)
    plugins = settings.plugins(custom_op_library)
    delegates = delegates_of(model, delegate or (), plugins, num_threads)
    with progress_bars() as progress:
        result = benchmark_model(
            model,
            inputs or [],
            shapes=dict(map(parse_shape, input_layer_shape or ())),
            signature=signature,
            schedule=Schedule(
                warmup_runs=warmup_runs,
                warmup_min_secs=warmup_min_secs,
                num_runs=num_runs,
                min_secs=min_secs,
                max_secs=max_secs,
                profiled_runs=min(num_runs, _PROFILED_RUNS) if profile else 0,
            ),
            seed=seed,
            num_threads=num_threads,
            plugins=plugins,
            delegates=delegates,
            compare=list(dict.fromkeys(compare or ())),
            progress=progress,
            raw=raw,
            notify=NoticePrinter(quiet),
        )
    if profile_html is not None:
        _write_page(result, profile_html)
    if trace is not None:
        from oplet.tools.benchmarking.trace import trace_events, write_trace

        title = f"oplet {os.path.basename(result.model)}"
        write_trace(trace, trace_events(result.events, spans=result.spans, names=result.names, title=title))
    if json:
        print_json(_as_json(result))
        return
    printer = Printer(wide)
    _print(printer, result)
    if profile:
        _print_profile(printer, result.profile, top, run_order)
    written = [str(path) for path in (profile_html, trace) if path is not None]
    if written:
        printer.line()
        printer.line(f"written to {' and '.join(written)}", "dim")


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
        ("load", _ms(result.load)),
        ("allocate", _ms(result.allocate)),
        ("initialization, together", _ms(result.load + result.allocate)),
        ("first inference", _ms(result.first)),
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
                _ms(rival.load),
                _ms(rival.allocate),
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
    printer.table("memory", ["", "MiB#"], [(name, _mib(size)) for name, size in sizes])


def _print_profile(printer: Printer, profile: Profile, top: int, run_order: bool) -> None:
    columns = ["node#", "op", "outputs~?", "start ms#???", "first ms#???", "ms#", "%#", "cumulative %#??", "calls#??"]
    if run_order:
        printer.table("nodes, in order", columns, [_node_row(node) for node in profile.nodes])
    if top:
        shown = profile.by_time[:top]
        printer.table(f"nodes: the costliest {len(shown)} of {len(profile.nodes)}", columns, [_node_row(node) for node in shown])
    ops = [(op.op, op.nodes, f"{op.calls:g}", _ms(op.seconds), _percent(op.share), _percent(op.cumulative)) for op in profile.ops]
    printer.table("kinds of ops", ["op", "nodes#", "calls#?", "ms#", "%#", "cumulative %#?"], ops)
    printer.line()
    printer.line(f"{profile.runs} profiled inferences; nodes took {_ms(profile.seconds)} ms of each", "dim")


def _node_row(node: NodeCost) -> tuple[str, ...]:
    name = node.name if len(node.name) <= _LONGEST_NAME else f"{node.name[: _LONGEST_NAME - 3]}..."
    place = f"{node.subgraph}:{node.node}" if node.subgraph else str(node.node)
    times = (_ms(node.start), _ms(node.first), _ms(node.seconds), _percent(node.share), _percent(node.cumulative))
    return place, node.label, name, *times, f"{node.calls:g}"


def _row(timings: Timings) -> tuple[str, ...]:
    t = timings
    return str(t.count), *map(_ms, (t.first, t.mean, t.std, t.min, t.p50, t.p90, t.p95, t.p99, t.max))


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3f}"


def _percent(part: float) -> str:
    return f"{part * 100:.1f}"


def _mib(size: int | None) -> str:
    return "unknown" if size is None else f"{size / 2**20:.2f}"


def _write_page(result: Benchmark, path: Path) -> None:
    from oplet.model.files.atomic_write import write_atomically
    from oplet.tools.benchmarking.profile_html import profile_page

    last = result.spans[-1]
    events = [event for event in result.events if event.start >= last.start]
    inputs = ", ".join(f"{name} {type}{list(shape)}" for name, (type, shape) in result.inputs.items())
    facts = [
        ("inputs", inputs),
        ("threads", str(result.num_threads)),
        *((name, f"{claimed} of {nodes} nodes") for name, claimed, nodes in result.delegated),
        ("load, allocate, first inference", f"{_ms(result.load)}, {_ms(result.allocate)}, {_ms(result.first)} ms"),
        ("inference", f"median {_ms(result.runs.p50)}, average {_ms(result.runs.mean)} ms of {result.runs.count}"),
        *((f"oplet / {rival.name}", f"{rival.ratio.median:.2f}") for rival in result.rivals),
        ("arena", f"{_mib(result.memory.arena)} MiB"),
        ("peak of the process", f"{_mib(result.memory.peak)} MiB"),
        ("profiled inferences", str(result.profile.runs)),
    ]
    title = f"oplet benchmark: {os.path.basename(result.model)}"
    write_atomically(path, profile_page(title, facts, result.profile, events, result.names))


def _as_json(result: Benchmark) -> dict[str, Any]:
    described = asdict(result)
    for inner in ("events", "spans", "names"):
        del described[inner]
    described["inputs"] = {name: {"type": type, "shape": list(shape)} for name, (type, shape) in result.inputs.items()}
    described["delegated"] = [{"delegate": d, "nodes": claimed, "of": nodes} for d, claimed, nodes in result.delegated]
    del described["profile"]["by_time"]
    return described
