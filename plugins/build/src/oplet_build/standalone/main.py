"""The command line of a program built by `oplet build --with-core`: `oplet run` for its models.

It uses the standard library's argparse, so that the program needs no other package for its command line.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from oplet.errors import OpletError, text_of
from oplet.texts import one_line, plain

if TYPE_CHECKING:
    from oplet_build.standalone.contents import AppContents
    from oplet_tools.running.outputs import Score
    from oplet_tools.running.run import RunResult
    from oplet_tools.running.values.notices import Notice

__all__ = ["main"]

_DEFAULT_TOP = 5
_WIDTH = 100


def main(contents: AppContents, arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit status: 0 if all went well, 1 after an error; wrong usage exits with 2.

    Args:
        contents: the program's contents.
        arguments: the command line without the program's name; that of the process by default.
    """
    parser = _parser(contents)
    given = parser.parse_args(arguments)
    try:
        if given.list:
            _list(contents)
            return 0
        missing = contents.missing()
        if missing:
            packages = " ".join(f'"{package}"' for package in missing)
            raise OpletError(f"this program needs more packages; install them: pip install {packages}")
        _run(contents, given, _chosen(contents, given, parser))
    except Exception as error:
        if given.debug:
            raise
        sys.stderr.write(f"{parser.prog}: {one_line(_message(error))}\n")
        return 1
    return 0


class _Formatter(argparse.HelpFormatter):
    """Help formatter of a fixed width: argparse would import modules at every start to find the terminal's width."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_WIDTH)


def _parser(contents: AppContents) -> argparse.ArgumentParser:
    names = ", ".join(model.name for model in contents.models)
    parser = argparse.ArgumentParser(
        prog=contents.name,
        description=f"Run a model once, on files or on random values. Models: {names}." if names else "Run a .tflite model once.",
        allow_abbrev=False,
        formatter_class=_Formatter,
    )
    add = parser.add_argument
    if contents.models:
        add("-m", "--model", metavar="NAME", help="which model; a .tflite file is taken too. Default: the only one")
    else:
        add("model", metavar="MODEL", nargs="?", help="a .tflite file")
    add("--list", action="store_true", help="list the models and stop")
    add(
        "-i",
        "--input",
        metavar="[NAME=]FILE",
        action="append",
        default=[],
        help=".npy, .npz, .json, .png or .jpg, of real values; may be repeated",
    )
    add("-o", "--output", metavar="FILE", type=Path, help="write the outputs, as real values: .npz, .npy or .json")
    add("--raw", action="store_true", help="values are a quantized tensor's integers, not what they stand for")
    add("--json", action="store_true", help="print JSON")
    add("-q", "--quiet", action="store_true", help="do not tell what was done to inputs")
    add("--top", metavar="N", type=_positive, help="show the N highest scores")
    add("--labels", metavar="FILE", type=Path, help="names of the scores, one a line")
    add("--scale", metavar="X", type=float, help="pixels become pixel * SCALE + OFFSET")
    add("--offset", metavar="X", type=float, help="see --scale")
    add("--signature", metavar="KEY", help="the signature to run. Default: the only one, or the first subgraph")
    add("--num-threads", metavar="N", type=_positive, default=1, help="threads that kernels may use")
    add("--seed", metavar="N", type=_seed, default=0, help="seed of the random inputs")
    add("--debug", action="store_true", help="show the traceback of an error")
    add("--version", action="version", version=f"{contents.name} {contents.version}".rstrip())
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not in the range x>=1")
    return number


def _seed(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{number} is not in the range x>=0")
    return number


def _list(contents: AppContents) -> None:
    for model in contents.models:
        _say(f"{plain(model.name)}  {model.size} bytes")


def _chosen(contents: AppContents, given: argparse.Namespace, parser: argparse.ArgumentParser) -> memoryview | str:
    """Return the model that the arguments choose: its bytes if it is in the program, else the path of its file."""
    wanted: str | None = given.model
    if wanted is None:
        if len(contents.models) == 1:
            return contents.read(contents.models[0])
        names = ", ".join(model.name for model in contents.models)
        parser.error(
            f"choose a model with --model NAME; there are {names}" if names else "the following arguments are required: MODEL"
        )
    model = contents.model(wanted)
    if model is not None:
        return contents.read(model)
    if contents.models and not wanted.endswith(".tflite"):
        names = ", ".join(each.name for each in contents.models)
        parser.error(f"there is no model '{wanted}'; there are {names}")
    return wanted


def _run(contents: AppContents, given: argparse.Namespace, model: memoryview | str) -> None:
    from oplet_tools.running.formatting import as_json, highest_scores
    from oplet_tools.running.outputs import check_suffix, read_labels, save_outputs
    from oplet_tools.running.run import run_model

    def say(text: str) -> None:
        if not given.quiet:
            sys.stderr.write(f"{contents.name}: {one_line(text)}\n")

    def notify(notice: Notice) -> None:
        say(f"{'warning: ' if notice.kind == 'clamped' else ''}{notice}")

    def warn(text: str) -> None:
        say(f"warning: {text}")

    if given.output is not None:
        check_suffix(given.output)
    labels = read_labels(given.labels) if given.labels is not None else []
    result = run_model(
        model,
        given.input,
        signature=given.signature,
        scale=given.scale,
        offset=given.offset,
        seed=given.seed,
        num_threads=given.num_threads,
        raw=given.raw,
        notify=notify,
    )
    if given.output is not None:
        save_outputs({value.name: value.displayed for value in result.outputs}, given.output)
    wanted = given.top is not None or given.labels is not None
    top = highest_scores(result, given.top or _DEFAULT_TOP, labels, str(given.labels), warn) if wanted else None
    if given.json:
        import json

        _say(json.dumps(as_json(result, str(given.output or ""), top), indent=2))
        return
    _print_values(result, given.seed)
    if top is not None:
        _print_top(top, bool(labels))
    if given.output is not None:
        _say(f"\nwritten to {plain(str(given.output))}")


def _print_values(result: RunResult, seed: int) -> None:
    from oplet_tools.running.formatting import describe_value, preview

    sources = [f"random, seed {seed}" if value.source == "random" else value.source for value in result.inputs]
    columns = ["name", "type", "shape", "from", "values"]
    _table("inputs", columns, [(*describe_value(v), source, preview(v)) for v, source in zip(result.inputs, sources)])
    _table("outputs", ["name", "type", "shape", "values"], [(*describe_value(v), preview(v)) for v in result.outputs])


def _print_top(top: dict[str, list[Score]], labelled: bool) -> None:
    first = 0 if labelled else 1
    for name, scores in top.items():
        cells = [(score.label, f"{score.value:.6g}", str(score.index))[first:] for score in scores]
        _table(f"{name}: the highest", ["label", "score", "index"][first:], cells)


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    lines = [tuple(columns), *(tuple(map(plain, row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines)]
    _say(f"\n{plain(title)}")
    for line in lines:
        _say("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _message(error: Exception) -> str:
    if isinstance(error, OpletError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return f"unexpected {text_of(error, named=True)} (--debug shows where; please report it)"
