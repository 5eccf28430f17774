"""The command line of a program that `oplet build --with-core` made: `oplet run` for the models inside.

It uses the standard library's argparse, so that the program carries no framework for command lines.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from oplet.errors import OpletError, text_of
from oplet.tools.text import one_line, plain

if TYPE_CHECKING:
    from oplet.tools.app_contents import AppContents
    from oplet.tools.run import RunResult

__all__ = ["main"]

_DEFAULT_TOP = 5
_WIDTH = 100


def main(contents: AppContents, arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit status: 0 if all went well, 1 after an error; wrong usage exits with 2.

    Args:
        contents: what is in the program.
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
    """Lines of a fixed width: to ask for the terminal's, argparse imports modules at every start."""

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
        help=".npy, .npz, .json, .png or .jpg; may be repeated",
    )
    add("-o", "--output", metavar="FILE", type=Path, help="write the outputs: .npz, .npy or .json")
    add("--top", metavar="N", type=_positive, help="show the N highest scores")
    add("--labels", metavar="FILE", type=Path, help="names of the scores, one a line")
    add("--scale", metavar="X", type=float, help="pixels become pixel * SCALE + OFFSET")
    add("--offset", metavar="X", type=float, help="see --scale")
    add("--signature", metavar="KEY", help="which signature. Default: the only one, or the first subgraph")
    add("--num-threads", metavar="N", type=_positive, default=1, help="threads that kernels may use")
    add("--seed", metavar="N", type=_seed, default=0, help="of the random inputs")
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
    """The bytes of the model to run, or the file that it is in."""
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
    from oplet.tools.outputs import check_suffix, read_labels, save_outputs
    from oplet.tools.run import run_model

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
    )
    if given.output is not None:
        save_outputs({value.name: value.array for value in result.outputs}, given.output)
    _print_values(result, given.seed)
    if given.top is not None or given.labels is not None:
        _print_top(contents, result, given.top or _DEFAULT_TOP, labels, str(given.labels))
    if given.output is not None:
        _say(f"\nwritten to {plain(str(given.output))}")


def _print_values(result: RunResult, seed: int) -> None:
    from oplet.tools.showing import described, head

    sources = [f"random, seed {seed}" if value.source == "random" else value.source for value in result.inputs]
    columns = ["name", "type", "shape", "from", "values"]
    _table("inputs", columns, [(*described(v), source, head(v)) for v, source in zip(result.inputs, sources)])
    _table("outputs", ["name", "type", "shape", "values"], [(*described(v), head(v)) for v in result.outputs])


def _print_top(contents: AppContents, result: RunResult, count: int, labels: list[str], file: str) -> None:
    from oplet.errors import TensorError
    from oplet.tools.outputs import top_scores

    rows = [value for value in result.outputs if 1 < value.array.size == max(value.array.shape, default=1)]
    if not rows:
        raise TensorError("No output is one row of scores, so there is nothing that --top and --labels could name.")
    for value in rows:
        scores = top_scores(value.array, value.details, count, labels)
        if labels and len(labels) != value.array.size:
            counts = f"has {len(labels)} labels for {value.array.size} scores"
            sys.stderr.write(f"{contents.name}: warning: '{plain(file)}' {counts}.\n")
        first = 0 if labels else 1
        cells = [(score.label, f"{score.value:.6g}", str(score.index))[first:] for score in scores]
        _table(f"{value.name}: the highest", ["label", "score", "index"][first:], cells)


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
