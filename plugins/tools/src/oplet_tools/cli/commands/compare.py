"""`oplet compare`: a model run in two ways, and the differences of the outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from oplet_tools.cli.settings import (
    Debug,
    Delegates,
    Inputs,
    Json,
    ModelFile,
    NumThreads,
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
    from oplet_tools.tuning.tolerances import Tolerance

__all__ = ["compare"]

#: The exit code if the model was compared with itself.
_NOTHING_DELEGATED = 3


def compare(
    context: typer.Context,
    model: ModelFile,
    delegate: Delegates = None,
    custom_op_library: OpLibraries = None,
    inputs: Inputs = None,
    reference: Annotated[
        str | None,
        option(
            "--with",
            metavar="WHAT",
            help="Compare with outputs in a file (.npz, .npy, .json), or with litert, litert-no-xnnpack or litert-reference.",
        ),
    ] = None,
    runs: Annotated[
        int | None,
        option(min=1, metavar="N", help="Number of runs, each with other random inputs. [default: 3; 1 with outputs in a file]"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the first run's random inputs.")] = 0,
    tolerance: Annotated[
        str | None,
        option(
            metavar="T",
            help="strict, float32, float16, int8, or the largest error as a part of a tensor's largest value. By default it goes with "
            "each tensor's type and the kind of model.",
        ),
    ] = None,
    rtol: Annotated[
        float | None, option(min=0, metavar="R", help="Instead of --tolerance: errors up to ATOL + RTOL * |value| pass.")
    ] = None,
    atol: Annotated[float | None, option(min=0, metavar="A", help="See --rtol; of integers in steps.")] = None,
    layers: Annotated[bool, option("--layers", help="Show the tensors at the borders of partitions too.")] = False,
    nodes: Annotated[bool, option("--nodes", help="Run each node by itself too, also where partitions would do.")] = False,
    bisect: Annotated[bool, option("--bisect", help="Find the first node whose output departs.")] = False,
    json: Json = False,
    scale: Annotated[float | None, option(help="Pixels become pixel * SCALE + OFFSET, see `oplet run`.")] = None,
    offset: Annotated[float | None, option(help="See --scale.")] = None,
    raw: Raw = False,
    quiet: Quiet = False,
    signature: Signature = None,
    num_threads: NumThreads = 1,
    wide: Wide = False,
    p: PluginSwitches = None,
    debug: Debug = False,
) -> None:
    """Run a model in two ways and compare: with a delegate and without, or with other packages' kernels and the built-in ones.

    Exits with 0 if the answers are the same, 1 if not, 2 for wrong usage, and 3 if the model was compared with itself, since nothing
    was delegated.
    """
    settings = settings_of(context, p, debug)
    from oplet_tools.cli.compare_report import as_json, print_report
    from oplet_tools.cli.console import Printer, print_json
    from oplet_tools.cli.notices import NoticePrinter
    from oplet_tools.cli.progress import progress_bars
    from oplet_tools.comparing.compare import compare_model
    from oplet_tools.comparing.interpreters import open_pair
    from oplet_tools.comparing.references import LITERT

    if reference == "":
        raise typer.BadParameter("it names no file, nor litert, litert-no-xnnpack or litert-reference.", param_hint="--with")
    in_file = bool(reference) and reference not in LITERT
    if in_file and runs is not None and runs > 1:
        raise typer.BadParameter("a file has the outputs of one run.", param_hint="--runs")
    if bisect and reference and (in_file or delegate):
        what = "outputs in a file" if in_file else "LiteRT and with a delegate at once"
        raise typer.BadParameter(
            f"it needs what each node gives, which comparing with {what} does not have.", param_hint="--bisect"
        )
    judged = _tolerance(tolerance, rtol, atol)
    with progress_bars() as progress:
        pair, chosen = open_pair(
            model,
            delegate or (),
            settings.plugins(custom_op_library),
            num_threads,
            with_reference=bool(reference),
            progress=progress,
        )
    result = compare_model(
        pair,
        inputs or (),
        runs=(1 if in_file else 3) if runs is None else runs,
        seed=seed,
        tolerance=judged,
        layers=layers,
        nodes=nodes,
        bisect=bisect,
        reference=reference or "",
        signature=signature,
        scale=scale,
        offset=offset,
        raw=raw,
        notify=NoticePrinter(quiet),
    )
    result.choice = chosen
    if json:
        print_json(as_json(result, layers))
    else:
        print_report(Printer(wide), result, layers, seed)
    if not result.passed:
        raise typer.Exit(1)
    if result.trivial:
        raise typer.Exit(_NOTHING_DELEGATED)


def _tolerance(text: str | None, rtol: float | None, atol: float | None) -> Tolerance | None:
    from oplet.errors import TensorError
    from oplet_tools.tuning.tolerances import elementwise, tolerance_named

    if rtol is not None or atol is not None:
        if text is not None:
            raise typer.BadParameter(
                "it stands in the place of --rtol and --atol; give one or the other.", param_hint="--tolerance"
            )
        return elementwise(rtol, atol)
    if text is None:
        return None
    try:
        return tolerance_named(text)
    except TensorError as error:
        raise typer.BadParameter(str(error), param_hint="--tolerance") from error
