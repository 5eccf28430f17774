"""Benchmark of a model: latency, memory use, and a profile of its nodes.

The counterpart of LiteRT's benchmark_model (tflite/tools/benchmark), with the same default numbers of runs and seconds.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from oplet import Interpreter
from oplet.errors import TensorError
from oplet.toolkit import Event, SubgraphRunner
from oplet_tools.benchmarking.litert_runner import LiteRTError, LiteRTRunner, import_litert
from oplet_tools.benchmarking.memory_use import peak_bytes, resident_bytes
from oplet_tools.benchmarking.profile import Place, Profile, summarize
from oplet_tools.benchmarking.profiling.node_facts import facts_of_nodes
from oplet_tools.benchmarking.profiling.peaks import Peaks, measure_peaks
from oplet_tools.benchmarking.profiling.spread import CpuProfiler
from oplet_tools.benchmarking.timings import Ratio, Timings
from oplet_tools.benchmarking.trace import Span
from oplet_tools.running.inputs import load_inputs, notify_of_random
from oplet_tools.running.many.identity import model_identity
from oplet_tools.running.model_runner import ModelRunner
from oplet_tools.running.values.notices import NoticeCallback, warn

if TYPE_CHECKING:
    from oplet import Delegate, PluginManager

__all__ = ["Benchmark", "Memory", "Rival", "Schedule", "benchmark_model", "parse_shape"]

#: Called between runs with the name of the current phase and its progress, 0 to 1.
Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class Schedule:
    """Numbers of runs. Each phase has at least the given runs and lasts at least the given seconds."""

    warmup_runs: int = 1  #: Least runs of the warm-up, the first inference included; 0 for the first inference alone.
    warmup_min_secs: float = 0.5  #: Least seconds of the warm-up.
    num_runs: int = 50  #: Least runs that are measured.
    min_secs: float = 1.0  #: Least seconds of the measured runs.
    max_secs: float = 150.0  #: Seconds after which a phase ends, though not before its first run.
    profiled_runs: int = 20  #: Least runs with the profiler on, after the measured ones; 0 for no profile.
    profiled_most: int = 0  #: If more than `profiled_runs`: runs after which profiling ends though `profiled_secs` are not over.
    profiled_secs: float = 10.0  #: Seconds after which profiling ends once `profiled_runs` are done.


@dataclass(frozen=True)
class Memory:
    """Memory use in bytes; None if the system does not report it."""

    model: int  #: Size of the model's file, which is mapped into memory.
    arena: int  #: Size of the arenas, blocks of memory that intermediate tensors share.
    resident_before: int | None  #: Resident set size of the process before the model was loaded, Python and numpy included.
    resident_allocated: int | None  #: Resident set size after the tensors were allocated.
    resident: int | None  #: Resident set size after the warm-up.
    peak: int | None  #: Largest resident set size of the process until the end of the warm-up.


@dataclass(frozen=True)
class Rival:
    """Times of another runtime, whose runs alternated with oplet's."""

    name: str  #: The runtime.
    version: str
    load: float  #: Seconds to construct its interpreter.
    allocate: float  #: Seconds to allocate its tensors.
    runs: Timings  #: Statistics of its measured runs.
    ratio: Ratio  #: oplet's time divided by this runtime's, over pairs of neighbouring runs: below 1 where oplet is faster.


#: How much longer than an inference its nodes may take while they are profiled, one by one.
_APART = 1.5


@dataclass
class Benchmark:
    """Results of a benchmark. Times are in seconds."""

    model: str  #: The model's file.
    signature: str  #: The key of the signature that was run, "" for the first subgraph.
    inputs: dict[str, tuple[str, tuple[int, ...]]]  #: Type and shape of each input, by name.
    num_threads: int  #: Threads that kernels may use.
    #: For each delegate its name, the number of nodes that it runs, and the number of nodes without delegates.
    delegated: list[tuple[str, int, int]]
    choice: str  #: What "auto" chose and why; "" if it was not asked for.
    load: float  #: Time to construct the interpreter.
    allocate: float  #: Time to allocate the tensors.
    first: float  #: Time of the first inference.
    warmup: Timings | None  #: Runs of the warm-up; None if there were none.
    runs: Timings  #: The measured runs.
    memory: Memory  #: Memory use.
    profile: Profile  #: Times of the nodes, from separate runs.
    rivals: list[Rival] = field(default_factory=list)  #: Times of other runtimes.
    events: list[Event] = field(default_factory=list, repr=False)  #: The profiler's events, one for each run of a node.
    #: Times besides those of nodes (loading, allocating, each inference), for a trace.
    spans: list[Span] = field(default_factory=list, repr=False)
    names: dict[Place, str] = field(default_factory=dict, repr=False)  #: Names of the nodes, by (subgraph, node).
    peaks: Peaks | None = None  #: The machine's highest throughputs, for a roofline; None if they were not asked for.
    model_sha256: str = ""  #: The SHA-256 of the model's file, in hexadecimal.

    @property
    def is_profile_apart(self) -> bool:
        """Whether the profile may mislead: without the profiler, where nodes and loops are fused, runs are much faster."""
        return self.profile.seconds > _APART * self.runs.p50


def benchmark_model(
    model: str | os.PathLike[str],
    inputs: Sequence[str] = (),
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    signature: str | None = None,
    schedule: Schedule = Schedule(),
    seed: int = 0,
    num_threads: int = 1,
    plugins: PluginManager | None = None,
    delegates: Sequence[Delegate] | str = (),
    compare: Sequence[str] = (),
    progress: Progress | None = None,
    raw: bool = False,
    notify: NoticeCallback = warn,
    roofline: bool = False,
) -> Benchmark:
    """Benchmark a model.

    Args:
        model: the .tflite file.
        inputs: "FILE" or "NAME=FILE" each, see `oplet_tools.running.inputs.load_inputs`; the rest is random.
        shapes: other shapes for inputs, by name.
        signature: the key of the signature to run; if None, the only signature, or the first subgraph if there are several or none.
        schedule: numbers of runs.
        seed: seed of the random values.
        num_threads: threads that kernels may use.
        plugins: the plugins that provide kernels; all installed ones by default.
        delegates: the delegates, in the order in which they claim nodes, or "auto" for the fastest.
        compare: keys of `oplet_tools.benchmarking.litert_runner.LITERT_RESOLVERS`, whose runs alternate with oplet's.
        progress: called with the name of a phase and the part of it that is done, 0 to 1.
        raw: whether files hold a quantized tensor's integers; otherwise they hold real values, which are quantized.
        notify: called with a notice of each change to an input.
        roofline: whether to measure the machine's highest throughputs, too (`Benchmark.peaks`).

    Raises:
        OpletError: the model, a package or an input is wrong.
        LiteRTError: LiteRT is missing or cannot run the model.
        OSError: a file cannot be read.
    """
    report_progress = progress or (lambda what, done: None)
    if compare:
        import_litert()
    profiler = CpuProfiler(enabled=False)
    resident_before = resident_bytes()
    spans = [Span("load", time.perf_counter(), 0.0)]
    interpreter = Interpreter(
        model_path=model,
        num_threads=num_threads,
        plugins=plugins,
        experimental_delegates=delegates,
        profiler=profiler,
    )
    spans[0] = _until_now(spans[0])
    runner = ModelRunner(interpreter, signature)
    subgraph = SubgraphRunner(interpreter, runner.subgraph_index)
    if compare and subgraph.index:
        raise LiteRTError(f"LiteRT runs the first subgraph only by itself; '{runner.signature}' is subgraph {subgraph.index}.")
    _resize(subgraph, runner, {} if shapes is None else shapes)
    given = load_inputs(inputs, runner.inputs, raw=raw, notify=notify)
    notify_of_random(given, runner.inputs, notify)
    values = {name: value for name, (value, _) in runner.complete(given, seed).items()}
    for name, value in values.items():
        subgraph.resize(runner.inputs[name]["index"], value.shape)
    spans.append(Span("allocate", time.perf_counter(), 0.0))
    subgraph.allocate()
    spans[1] = _until_now(spans[1])
    resident_allocated = resident_bytes()
    for name, value in values.items():
        subgraph.set(runner.inputs[name]["index"], value)

    invoke = subgraph.invoke

    def inspected() -> None:
        profiler.begin()
        spans.append(Span("inference", time.perf_counter(), 0.0))
        invoke()
        spans[-1] = _until_now(spans[-1])

    with _without_collector():
        spans.append(Span("first inference", time.perf_counter(), 0.0))
        profiler.enabled = bool(schedule.profiled_runs)
        invoke()
        profiler.enabled = False
        spans[2] = _until_now(spans[2])
        first = list(profiler.events)
        profiler.clear()
        warmup: list[float] = []
        if schedule.warmup_runs:
            least, seconds = schedule.warmup_runs - 1, schedule.warmup_min_secs - spans[2].seconds
            [warmup] = _rounds([invoke], least, seconds, schedule.max_secs, "warming up", report_progress)
        memory = Memory(
            model=os.path.getsize(model),
            arena=sum(each.arena_bytes for each in interpreter.subgraphs),
            resident_before=resident_before,
            resident_allocated=resident_allocated,
            resident=resident_bytes(),
            peak=peak_bytes(),
        )
        fed = {runner.inputs[name]["index"]: value for name, value in values.items()}
        rivals = [LiteRTRunner(name, model, fed, num_threads) for name in compare]
        invokes = [invoke, *(rival.invoke for rival in rivals)]
        runs, *others = _rounds(
            invokes, max(schedule.num_runs, 1), schedule.min_secs, schedule.max_secs, "running", report_progress
        )
        profiler.enabled = True
        least, most = schedule.profiled_runs, max(schedule.profiled_most, schedule.profiled_runs)
        seconds = min(schedule.profiled_secs, schedule.max_secs) if least else 0.0
        [profiled] = _rounds([inspected], least, seconds, schedule.max_secs, "profiling", report_progress, most)
        profiler.enabled = False
    facts = facts_of_nodes(interpreter, plugins)
    return Benchmark(
        model=os.fspath(model),
        signature=runner.signature,
        inputs={name: (_type(value), value.shape) for name, value in values.items()},
        num_threads=num_threads,
        delegated=[
            (report.delegate, sum(map(len, report.partitions)), report.nodes) for report in interpreter.delegation_reports()
        ],
        choice=str(interpreter.choice or ""),
        load=spans[0].seconds,
        allocate=spans[1].seconds,
        first=spans[2].seconds,
        warmup=Timings.of([spans[2].seconds, *warmup]) if schedule.warmup_runs else None,
        runs=Timings.of(runs),
        memory=memory,
        profile=summarize(profiler.events, runs=len(profiled), facts=facts, away=profiler.away, first=first),
        rivals=[
            Rival(rival.name, rival.version, rival.load, rival.allocate, Timings.of(theirs), Ratio.of(runs, theirs))
            for rival, theirs in zip(rivals, others)
        ],
        events=list(profiler.events),
        spans=spans,
        names={place: fact.name for place, fact in facts.items()},
        peaks=measure_peaks() if roofline else None,
        model_sha256=model_identity(model)["sha256"],
    )


def parse_shape(text: str) -> tuple[str, tuple[int, ...]]:
    """Parse a text NAME:SHAPE into name and shape. The name ends at the last colon, because names may contain colons.

    Raises:
        TensorError: the text is malformed.

    Examples:
        >>> parse_shape("serving_default_x:0:1,224,224,3")
        ('serving_default_x:0', (1, 224, 224, 3))
    """
    name, colon, dims = text.rpartition(":")
    try:
        shape = tuple(int(dim) for dim in dims.split(",")) if dims else ()
    except ValueError:
        colon = ""
        shape = ()
    if not colon or not name or any(dim < 0 for dim in shape):
        raise TensorError(f"'{text}' is not of the form NAME:1,224,224,3.")
    return name, shape


def _resize(subgraph: SubgraphRunner, runner: ModelRunner, shapes: Mapping[str, Sequence[int]]) -> None:
    for name, shape in shapes.items():
        if name not in runner.inputs:
            known = ", ".join(f"'{known}'" for known in runner.inputs) or "none"
            raise TensorError(f"There is no input '{name}' to give a shape; the inputs are {known}.")
        details = runner.inputs[name]
        subgraph.resize(details["index"], tuple(shape))
        fresh = subgraph.details(details["index"])
        runner.inputs[name] = details | fresh | {"name": details["name"], "shape_signature": fresh["shape"]}


def _rounds(
    invokes: Sequence[Callable[[], None]],
    least: int,
    min_secs: float,
    max_secs: float,
    what: str,
    report_progress: Progress,
    most: int | None = None,
) -> list[list[float]]:
    """Call each callable once per round, in an order that rotates; return the seconds of each call, a list per callable.

    Args:
        most: rounds after which `min_secs` no longer count; None for no such number.
        least: the least number of rounds.
        min_secs: the least seconds of all calls together, unless `most` rounds are done before.
        max_secs: seconds after which no further round begins, though not before the first.
        what: the name of the phase, for `report_progress`.
    """
    clock = time.perf_counter
    seconds: list[list[float]] = [[] for _ in invokes]
    spent, rounds = 0.0, 0
    while (rounds < least or (spent < min_secs and (most is None or rounds < most))) and (spent < max_secs or not rounds):
        for place in range(len(invokes)):
            runner = (rounds + place) % len(invokes)
            invoke = invokes[runner]
            start = clock()
            invoke()
            took = clock() - start
            seconds[runner].append(took)
            spent += took
        rounds += 1
        by_time = max(spent / min_secs if min_secs > 0 else 1.0, rounds / most if most else 0.0)
        report_progress(what, max(min(rounds / max(least, 1), by_time), spent / max_secs))
    return seconds


@contextmanager
def _without_collector() -> Iterator[None]:
    """Switch the garbage collector off while the block runs, so that collecting what earlier runs left does not count as time of
    a run.
    """
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _until_now(span: Span) -> Span:
    return span._replace(seconds=time.perf_counter() - span.start)


def _type(value: NDArray[Any]) -> str:
    return "string" if value.dtype.hasobject else str(value.dtype)
