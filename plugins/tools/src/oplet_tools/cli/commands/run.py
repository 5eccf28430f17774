"""`oplet run`: run a model once and show the outputs, or on many rows and write their results."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oplet_tools.cli.settings import (
    Debug,
    Delegates,
    Json,
    ModelFile,
    NumThreads,
    OpLibraries,
    PluginSwitches,
    Quiet,
    Raw,
    Signature,
    option,
    settings_of,
)
from oplet_tools.running.values.result_sizes import MOST_RESULT_BYTES

if TYPE_CHECKING:
    from oplet_tools.cli.console import Printer
    from oplet_tools.cli.settings import Settings
    from oplet_tools.running.detecting import Objects
    from oplet_tools.running.many.run import ManyOptions
    from oplet_tools.running.outputs import Score
    from oplet_tools.running.run import RunResult
    from oplet_tools.running.values.preprocessing import Preprocessing

__all__ = ["run"]

_DEFAULT_TOP = 5
#: The most objects that the table shows.
_MOST_OBJECTS = 20
#: Suffixes of results that only many rows have.
_ROW_SUFFIXES = (".jsonl", ".ndjson", ".csv", ".parquet")
#: The exit status of a run on many rows of which some failed, and of one that Ctrl-C ended.
_SOME_FAILED, _INTERRUPTED = 3, 130

Inputs = Annotated[
    list[str] | None,
    option(
        "--input",
        "-i",
        metavar="[NAME=]SOURCE",
        help="A value for an input: .npy, .npz, .json, .png or .jpg. May be given several times; what is not given is random. "
        "Numbers are real values, which are quantized where the input is; see --raw. Many rows: a folder of such files, .npy or .npz "
        "with a first axis of rows, .jsonl, .parquet, .arrow, or - for JSON lines from standard input.",
    ),
]


class RowFormat(str, Enum):
    """Formats of the results of many rows."""

    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    NPZ = "npz"


def run(
    context: typer.Context,
    model: ModelFile,
    inputs: Inputs = None,
    output: Annotated[
        Path | None,
        option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the outputs, as real values: .npz, .npy or .json; of many rows .jsonl, .csv, .parquet or .npz.",
        ),
    ] = None,
    top: Annotated[int | None, option(min=1, metavar="N", help="Show the N highest scores.")] = None,
    labels: Annotated[Path | None, option(metavar="FILE", help="Names of the scores, one a line.")] = None,
    locale: Annotated[
        str | None, option(metavar="LANGUAGE", help="The language of labels in the model's metadata, such as de.")
    ] = None,
    scale: Annotated[
        float | None,
        option(
            help="Pixels become pixel * SCALE + OFFSET. Default: what the model's metadata say, else 0..1 for float inputs "
            "and the whole range for 8-bit ones."
        ),
    ] = None,
    offset: Annotated[float | None, option(help="See --scale.")] = None,
    preprocess: Annotated[
        str | None,
        option(
            metavar="KEY=VALUE,...",
            help="What becomes of pictures: resize=stretch|crop|pad, filter=box|nearest|bilinear|bicubic|lanczos, fill=PIXEL, "
            "order=rgb|bgr, mean=X[:X:X], std=X[:X:X], scale=X, offset=X.",
        ),
    ] = None,
    rows: Annotated[
        bool,
        typer.Option("--rows", help="Run each row of .npy and .npz by itself, also where they could be one value."),
    ] = False,
    format: Annotated[
        RowFormat | None,
        option(help="Format of the results of many rows. Default: by the suffix of --output, JSON lines on standard output."),
    ] = None,
    workers: Annotated[int | None, option(min=1, metavar="N", help="Rows that run at the same time. Default: 1.")] = None,
    processes: Annotated[
        bool,
        typer.Option("--processes", help="Let each worker be a process, for kernels written in Python."),
    ] = False,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Stop at the first row that fails; else its error is its result."),
    ] = False,
    resume: Annotated[
        bool | None, option("--resume/--no-resume", help="Continue a run that was interrupted, or begin it anew.")
    ] = None,
    max_result_bytes: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", help="Most bytes that the results of a run, or of a row, may take when they are written."
        ),
    ] = MOST_RESULT_BYTES,
    raw: Raw = False,
    signature: Signature = None,
    delegate: Delegates = None,
    custom_op_library: OpLibraries = None,
    num_threads: NumThreads = 1,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the random inputs.")] = 0,
    mmap: Annotated[
        bool,
        typer.Option("--mmap/--no-mmap", help="Map the model's file, or read it into memory, safe from changes to the file."),
    ] = True,
    json: Json = False,
    quiet: Quiet = False,
    p: PluginSwitches = None,
    debug: Debug = False,
) -> None:
    """Run a model once, on files or on random values, or on each row of many.

    Values are real numbers on the way in and out, in files, tables and JSON: what a quantized tensor's integers stand for,
    (integer - zero point) * scale. Inputs are rounded as the op QUANTIZE does it; values beyond the tensor's range are clamped,
    with a warning. With --raw they are the integers themselves. Arrays of integers for a quantized input, which may mean either,
    need --raw. What was done to a picture is told on standard error, and what the model's own metadata say of pictures, labels, scores and
    boxes is done, and told too.

    Many rows come from a folder, a file of rows or standard input. Results are written as they come; a run that was interrupted goes on
    with --resume. The exit status is 3 if some rows failed and the others ran.
    """
    settings = settings_of(context, p, debug)
    from oplet_tools.running.many.kinds import has_many_rows

    preprocessing = _preprocessing(preprocess, scale, offset)
    if locale is not None and not re.fullmatch(r"[A-Za-z0-9]+([-_][A-Za-z0-9]+)*", locale):
        raise typer.BadParameter("a language is a tag such as de or pt-BR.", param_hint="--locale")
    language = locale or ""

    def on_rows() -> None:
        from oplet_tools.running.many.reading.rows import InputOptions
        from oplet_tools.running.many.run import ManyOptions
        from oplet_tools.running.outputs import read_labels

        options = ManyOptions(
            output=output,
            format=format.value if format is not None else "",
            inputs=InputOptions(raw, preprocessing),
            top=top,
            labels=tuple(read_labels(labels)) if labels is not None else None,
            labels_file=str(labels or ""),
            locale=language,
            workers=1 if workers is None else workers,
            processes=processes,
            strict=strict,
            resume=resume,
            max_result_bytes=max_result_bytes,
            signature=signature,
            num_threads=num_threads,
            delegates=tuple(delegate or ()),
            blocked=tuple(settings.blocked),
            libraries=tuple(custom_op_library or ()),
            use_mmap=mmap,
        )
        _run_on_rows(settings, model, inputs or (), options, json, quiet)

    asked = rows or strict or processes or workers is not None or format is not None or resume is not None
    if asked or has_many_rows(inputs or ()) or (output is not None and output.suffix.lower() in _ROW_SUFFIXES):
        on_rows()
        return
    from oplet.toolkit import check_target
    from oplet_tools.cli.commands.tune import delegates_of
    from oplet_tools.cli.console import Printer, print_json
    from oplet_tools.cli.notices import NoticePrinter
    from oplet_tools.running.formatting import as_json, highest_scores, objects_of, rules_of
    from oplet_tools.running.inputs import RowsError
    from oplet_tools.running.outputs import check_suffix, read_labels, save_outputs
    from oplet_tools.running.run import run_model
    from oplet_tools.running.values.result_sizes import check_result_bytes

    if output is not None:
        check_suffix(output)
        check_target(output)
    names = read_labels(labels) if labels is not None else []
    notify = NoticePrinter(quiet)
    plugins = settings.plugins(custom_op_library)
    try:
        result = run_model(
            model,
            inputs or (),
            signature=signature,
            preprocessing=preprocessing,
            seed=seed,
            num_threads=num_threads,
            plugins=plugins,
            delegates=delegates_of(model, delegate or (), plugins, num_threads),
            use_mmap=mmap,
            raw=raw,
            notify=notify,
        )
    except RowsError:
        on_rows()
        return
    if output is not None or json:
        as_text = output is None or output.suffix.lower() == ".json"
        arrays = {value.name: value.array for value in result.outputs}
        check_result_bytes(arrays, max_result_bytes, as_text=as_text, padded=True, real=not raw)
    if output is not None:
        save_outputs({value.name: value.displayed for value in result.outputs}, output)
    rules = rules_of(result, notify, locale=language, labelled=labels is not None)
    objects = objects_of(result, notify, locale=language)
    wanted = top is not None or labels is not None or any(each.labels for each in rules.values())
    highest = highest_scores(result, top or _DEFAULT_TOP, names, str(labels), notify.warn, rules) if wanted else None
    if json:
        print_json(as_json(result, str(output or ""), highest, objects))
        return
    printer = Printer()
    _print_values(printer, result, seed)
    if highest is not None:
        _print_top(printer, highest)
    if objects is not None:
        _print_objects(printer, objects)
    if output is not None:
        printer.line()
        printer.line(f"written to {output}", "dim")


def _preprocessing(text: str | None, scale: float | None, offset: float | None) -> Preprocessing:
    """Return the preprocessing of pictures that --preprocess, --scale and --offset ask for."""
    from oplet_tools.running.values.preprocessing import Preprocessing, parse_preprocessing

    asked = parse_preprocessing(text) if text is not None else Preprocessing()
    if scale is None and offset is None:
        return asked
    if asked.scale is not None or asked.offset is not None or asked.normalization is not None:
        raise typer.BadParameter("it says what becomes of pixels, and --scale and --offset do too.", param_hint="--preprocess")
    return replace(asked, scale=scale, offset=offset)


def _run_on_rows(settings: Settings, model: Path, inputs: Sequence[str], options: ManyOptions, json: bool, quiet: bool) -> None:
    """Run the model on many rows; exit with a special status if some rows failed or Ctrl-C ended the run."""
    from oplet.toolkit import check_target
    from oplet_tools.cli.commands.tune import delegates_of
    from oplet_tools.cli.console import print_json
    from oplet_tools.cli.row_report import row_report
    from oplet_tools.running.many.run import run_many

    if options.output is not None:
        check_target(options.output)
    plugins = settings.plugins(options.libraries)
    if "auto" in options.delegates:
        delegates_of(model, options.delegates, plugins, options.num_threads)
    with row_report(quiet, bar=options.output is not None or not sys.stdout.isatty()) as report:
        try:
            summary = run_many(model, inputs, options, plugins, sys.stdin.buffer, sys.stdout.buffer, report)
        except KeyboardInterrupt:
            report.interrupted(options.output is not None)
            raise typer.Exit(_INTERRUPTED) from None
    report.end(summary)
    if json and options.output is not None:
        print_json(asdict(summary))
    if summary.failed:
        raise typer.Exit(_SOME_FAILED)


def _print_values(printer: Printer, result: RunResult, seed: int) -> None:
    from oplet_tools.running.formatting import describe_value, preview

    served = ", ".join(f"{count} by {who}" for who, count in result.providers.items()) or "none"
    printer.line(f"nodes: {served}", "dim")
    if result.choice:
        printer.line(result.choice, "dim")
    sources = [f"random, seed {seed}" if value.source == "random" else value.source for value in result.inputs]
    columns = ["name", "type", "shape", "from", "values"]
    printer.table("inputs", columns, [(*describe_value(v), source, preview(v)) for v, source in zip(result.inputs, sources)])
    printer.table("outputs", ["name", "type", "shape", "values"], [(*describe_value(v), preview(v)) for v in result.outputs])


def _print_top(printer: Printer, top: dict[str, list[Score]]) -> None:
    for name, scores in top.items():
        first = 0 if any(score.label for score in scores) else 1
        cells = [(score.label, f"{score.value:.6g}", score.index)[first:] for score in scores]
        printer.table(f"{name}: the highest", ["label", "score#", "index#"][first:], cells)


def _print_objects(printer: Printer, objects: Objects) -> None:
    unit = "pixels of the picture" if objects.unit == "pixels" else "parts of the input's width and height"
    rows = [
        (each.label, f"{each.score:.6g}", each.number, *(f"{number:.5g}" for number in each.box))
        for each in objects.found[:_MOST_OBJECTS]
    ]
    more = len(objects.found) - len(rows)
    title = f"objects, in {unit}" + (f" ({more} more)" if more else "")
    printer.table(title, ["label", "score#", "class#?", "left#", "top#", "right#", "bottom#"], rows)
