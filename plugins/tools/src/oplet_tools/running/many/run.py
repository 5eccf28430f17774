"""Runs a model on many rows: reads them from sources, runs them on workers, and writes a file; an interrupted run can be
resumed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

import oplet
from oplet.errors import InvokeError, StateError, TensorError
from oplet.texts import counted
from oplet.toolkit import atomic_write, is_special, open_file
from oplet_predictor import MapSettings, Predictor, map_items
from oplet_tools.running.detecting import detector_in
from oplet_tools.running.many.forms import output_forms
from oplet_tools.running.many.identity import model_identity
from oplet_tools.running.many.keeping.joining import check_joinable, join_npz, join_parquet
from oplet_tools.running.many.keeping.journal import Journal, Sink, Stream
from oplet_tools.running.many.keeping.results import CsvLines, JsonRows, OutputForm, Records, ResultFormat, RowResult
from oplet_tools.running.many.preparing import Finished, RowRunner, input_details
from oplet_tools.running.many.reading.rows import InputOptions
from oplet_tools.running.many.reading.sources import Sources, open_sources
from oplet_tools.running.values.result_sizes import MOST_RESULT_BYTES, OPTION

if TYPE_CHECKING:
    from oplet import PluginManager
    from oplet_predictor import Lent
    from oplet_tools.metadata.detections import Detector
    from oplet_tools.running.values.notices import Notice

__all__ = ["FORMATS", "ManyOptions", "Reporter", "Summary", "format_of", "run_many"]

#: Formats of results by the suffix of their file.
FORMATS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".parquet": "parquet", ".npz": "npz"}


class Reporter(Protocol):
    """Protocol: receives notices, warnings, failures and progress while a model runs many rows of inputs."""

    def notify(self, notice: Notice) -> None:
        """Report what was done to an input's value, such as clamping."""

    def say(self, text: str) -> None:
        """Report a decision or finding, such as which rows were skipped."""

    def warn(self, text: str) -> None:
        """Warn of something that the user may not have intended."""

    def failed(self, name: str, error: str) -> None:
        """Report that a row failed."""

    def progress(self, done: int, total: int | None) -> None:
        """Report that `done` of `total` rows are complete; the total is None if it is not known."""


@dataclass(frozen=True)
class ManyOptions:
    """The options of a run; see `oplet run --help`."""

    output: Path | None = None  #: The results' file; None for `stdout`.
    format: str = ""  #: The results' format, one of `FORMATS`; "" to choose by the file's suffix.
    #: Options of the conversion of given values to the inputs' types and shapes.
    inputs: InputOptions = field(default_factory=InputOptions)
    #: The number of highest scores to write in place of an output's values; None for scores only where the metadata have labels.
    top: int | None = None
    labels: tuple[str, ...] | None = None  #: Labels of the scores; None for those in the model's metadata.
    labels_file: str = ""  #: The labels' file, for messages.
    locale: str = ""  #: The language of labels in the model's metadata; "" for the first.
    workers: int = 1  #: The number of workers.
    processes: bool = False  #: Whether each worker is a process; otherwise workers are threads.
    strict: bool = False  #: Whether to stop at the first row that fails.
    #: True to continue an interrupted run, False to begin anew, None to raise an error if there is one.
    resume: bool | None = None
    max_result_bytes: int = MOST_RESULT_BYTES  #: The most bytes that a row's results, or all results in a file, may take.
    signature: str | None = None  #: The key of the signature to run.
    num_threads: int = 1  #: Threads of each worker's kernels.
    delegates: tuple[str, ...] = ()  #: Delegates, as texts; "auto" alone for the fastest.
    blocked: tuple[str, ...] = ()  #: Names of plugins that are switched off.
    libraries: tuple[str, ...] = ()  #: Libraries of operators, as texts that `parse_op_library` reads.
    use_mmap: bool = True  #: Whether the model's file is mapped into memory; otherwise it is read.

    def identity(self) -> dict[str, Any]:
        """Return the options that results depend on, named as on the command line."""
        return {
            "--format": format_of(self.output, self.format),
            "--raw": self.inputs.raw,
            "--preprocess": [f"{key}={value}" for key, value in asdict(self.inputs.preprocessing).items()],
            "--top": self.top,
            "--labels": None if self.labels is None else list(self.labels),
            "--locale": self.locale,
            "--signature": self.signature,
            "--delegate": list(self.delegates),
            "-p": list(self.blocked),
            "--custom-op-library": list(self.libraries),
        }


@dataclass(frozen=True)
class Summary:
    """Counts and time of a finished run."""

    rows: int  #: The number of rows, including those of an interrupted run that was continued.
    failed: int  #: How many of them failed.
    before: int  #: The number of rows that an interrupted run had finished.
    seconds: float  #: The time that the rows of this run took.
    written: str  #: The results' file, "" for standard output.


def format_of(output: Path | None, format: str) -> str:
    """Return the name of the results' format: `format` if given, else by the file's suffix; "jsonl" for standard output.

    Raises:
        TensorError: the suffix is unknown, or the format needs a file.
    """
    if output is None:
        if format in ("parquet", "npz"):
            raise TensorError(f"--format {format} needs a file: give --output.")
        return format or "jsonl"
    by_suffix = FORMATS.get(output.suffix.lower())
    if not format and by_suffix is None:
        raise TensorError(f"'{output}' must end in {', '.join(FORMATS)} for the results of many rows, or give --format.")
    return format or str(by_suffix)


def run_many(
    model: Path,
    inputs: Sequence[str],
    options: ManyOptions,
    plugins: PluginManager | None,
    stdin: BinaryIO,
    stdout: BinaryIO,
    reporter: Reporter,
) -> Summary:
    """Run a model on many rows (sets of inputs), and write the results.

    Args:
        model: the .tflite file.
        inputs: "SOURCE" or "NAME=SOURCE" each, see `oplet_tools.running.many.reading.sources`.
        plugins: the plugins in this process; worker processes use all installed ones except `options.blocked`.
        stdin: the stream to read rows from where an input is "-".
        stdout: where results go if `options.output` is None.
        reporter: receives messages about the run.

    Raises:
        OpletError: the model, a package, an option or a whole source is wrong, or with `strict` a row.
        OSError: a file cannot be read or written.
    """
    format_of(options.output, options.format)
    by_name = options.processes and not options.libraries
    with ExitStack() as stack:
        predictor = stack.enter_context(
            Predictor(
                model if options.use_mmap else _content(model),
                delegates="auto" if options.delegates == ("auto",) else options.delegates,
                num_threads=options.num_threads,
                signature=options.signature,
                plugins=[f"no:{name}" for name in options.blocked] or None if by_name else plugins,
            )
        )
        if options.processes:
            predictor._ensure_picklable()
        lent = predictor._take()
        try:
            details = input_details(lent)
            forms = output_forms(lent, options.top, options.labels, options.labels_file, reporter, options.locale)
            detector = _detector(lent, details, options, reporter)
        finally:
            predictor._give(lent)
        sources = open_sources(inputs, details, options.inputs, stdin, reporter.notify, reporter.say)
        if options.resume and not sources.can_come_again:
            raise StateError(
                "What comes from standard input cannot be continued, as nothing tells whether it is the same again; write it into a file."
            )
        identity = partial(_identity, model, options, sources)
        format, sink = stack.enter_context(_opened(options, forms, identity, stdout))
        before = sink.kept
        if before.rows:
            reporter.say(f"continuing after {counted(before.rows, 'row')}")
        constants = {name: value for name, (value, _) in sources.constants.items()}
        runner = RowRunner(predictor, constants, options.inputs, forms, format, before.rows, options.max_result_bytes, detector)
        settings = MapSettings.checked(options.workers, options.processes, True, "raise", False)
        began = time.monotonic()
        done, failed, size = before.rows, before.failed, before.nbytes or len(format.header())
        finished = stack.enter_context(closing(map_items(runner, sources.rows(before.rows), settings)))
        reporter.progress(done, sources.count)
        for each in _of_one_shape(finished, format, sink):
            for notice in each.notices:
                reporter.notify(notice)
            if each.error:
                if options.strict:
                    raise InvokeError(f"Row {each.number}, {each.name!r}: {each.error}")
                reporter.failed(each.name, each.error)
                failed += 1
            size += len(each.encoded)
            if size > options.max_result_bytes and isinstance(sink, Journal):
                raise TensorError(
                    f"The results of {counted(done + 1, 'row')} take {size} bytes, and {OPTION} {options.max_result_bytes} allows no more; "
                    "give a higher number, with --resume to go on."
                )
            sink.append(each.encoded)
            done += 1
            reporter.progress(done, sources.count)
        seconds = time.monotonic() - began
        sink.finish()
    return Summary(done, failed, before.rows, seconds, str(options.output or ""))


def _detector(lent: Lent, details: Mapping[str, Any], options: ManyOptions, reporter: Reporter) -> Detector | None:
    """Return how the objects of a detector are read for results that have them, JSON lines."""
    if options.inputs.raw or format_of(options.output, options.format) != "jsonl":
        return None
    opened = lent.single
    outputs = {name: column.details for name, column in opened.outputs.items()}
    model = opened.interpreter.model
    return detector_in(model, opened.subgraph.index, details, outputs, reporter, locale=options.locale)


def _content(path: Path) -> bytes:
    with open_file(path) as file:
        return file.read()


def _identity(model: Path, options: ManyOptions, sources: Sources) -> dict[str, Any]:
    return {
        "oplet": oplet.__version__,
        "model": model_identity(model),
        "inputs": sources.identity
        | {
            f"{name}, in each row": {"what": f"the file '{file}'", "value": _digest(value)}
            for name, (value, file) in sources.constants.items()
        },
        "options": options.identity(),
    }


def _digest(value: Any) -> str:
    import hashlib

    content = repr(value.tolist()).encode() if value.dtype.hasobject else value.tobytes()
    return hashlib.sha256(content).hexdigest()


@contextmanager
def _opened(
    options: ManyOptions, forms: tuple[OutputForm, ...], identity: Callable[[], Mapping[str, Any]], stdout: BinaryIO
) -> Iterator[tuple[ResultFormat, Sink]]:
    """Open the destination of results, a journal folder or `stdout`; yield their format and the destination."""
    kind, output = format_of(options.output, options.format), options.output
    format: ResultFormat
    join: Callable[[BinaryIO], None] | None = None
    if kind == "jsonl":
        format = JsonRows(forms)
    elif kind == "csv":
        format = CsvLines(forms)
    else:
        format = records = Records(forms, keep_top_values=kind == "npz")
        if output is not None:
            check_joinable(kind, output, forms)
            join = (
                partial(join_npz, output, records, forms, options.max_result_bytes)
                if kind == "npz"
                else partial(join_parquet, output, records, forms)
            )
    if output is None or is_special(str(output)):
        if options.resume:
            raise TensorError("Only results in a file can be continued; give --output a file, or leave out --resume.")
        if output is None:
            yield format, Stream(stdout, format)
        elif join is not None:
            raise TensorError(f"'{output}' is no file that .{kind} results could be put together in; give one.")
        else:
            with atomic_write(output) as file:
                yield format, Stream(file, format)
        return
    with closing(Journal(output, format, identity, options.resume, join)) as journal:
        yield format, journal


def _of_one_shape(finished: Iterator[Finished], format: ResultFormat, sink: Sink) -> Iterator[Finished]:
    """Turn rows whose outputs differ in shape from the first row's into failures, as an .npz needs one shape; rows of other
    formats pass unchanged.
    """
    if not (isinstance(format, Records) and format.keep_top_values):
        yield from finished
        return
    shapes = sink.first_shapes() if isinstance(sink, Journal) else {}
    for each in finished:
        shapes = shapes or dict(each.shapes)
        for name, shape in each.shapes.items():
            if shape != shapes[name]:
                error = (
                    f"its output '{name}' has the shape {list(shape)}, and that of rows before is {list(shapes[name])}, where an .npz holds "
                    "rows of one shape; give .jsonl or .parquet."
                )
                encoded = format.encode(RowResult(each.number, each.name, {}, {}, error))
                each = Finished(each.number, each.name, encoded, error, each.notices, {})
                break
        yield each
