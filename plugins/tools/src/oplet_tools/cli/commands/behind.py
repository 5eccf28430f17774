"""`oplet behind`: run a program that was written for LiteRT, unmodified, on oplet."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from oplet_tools.cli.notices import say
from oplet_tools.cli.settings import Debug, Delegates, PluginSwitches, argument, option, settings_of

__all__ = ["behind"]


def behind(
    context: typer.Context,
    program: Annotated[str, argument(metavar="PROGRAM", help="A script, a command that is one, or with -m a module.")],
    arguments: Annotated[list[str] | None, argument(metavar="[ARGS]...", help="The program's arguments.")] = None,
    module: Annotated[bool, option("-m", help="PROGRAM is a module, as for python -m.")] = False,
    delegate: Delegates = None,
    num_threads: Annotated[
        int | None, option(min=1, metavar="N", help="Threads of interpreters that the program gives no number.")
    ] = None,
    tensorflow: Annotated[
        bool, option("--tensorflow", help="Answer tensorflow.lite also where TensorFlow is not installed.")
    ] = False,
    p: PluginSwitches = None,
    debug: Debug = False,
) -> None:
    """Run a program as Python does, with its imports of LiteRT's interpreter answered by oplet; say at the end what ran where.

    Options stand before PROGRAM. Answered are tflite_runtime.interpreter, ai_edge_litert.interpreter and tensorflow.lite; of other modules
    of theirs the last line tells which are LiteRT's own, and what was refused.
    """
    settings = settings_of(context, p, debug)
    from oplet.errors import DelegateError, ModelError
    from oplet_tools.behind.launch import UsageReport, run_behind

    report = UsageReport()
    code: int | str | None = 0
    try:
        run_behind(
            program,
            arguments or (),
            is_module=module,
            plugins=settings.plugins(),
            blocked=settings.blocked,
            delegates=delegate or (),
            num_threads=num_threads,
            tensorflow=tensorflow,
            report=report,
        )
    except (ModelError, DelegateError):
        if not report.answered and not report.models:
            raise
        _tell()
        code = 1
    except SystemExit as ended:
        code = ended.code
    except BaseException:  # the program's own exception, shown as Python shows it
        _tell()
        code = 130 if isinstance(sys.exc_info()[1], KeyboardInterrupt) else 1
    sys.stdout.flush()
    say(str(report))
    sys.exit(code)


def _tell() -> None:
    """Print the program's traceback, without the frames of oplet and runpy that come before it."""
    kind, error, traceback = sys.exc_info()
    begin = traceback
    while begin is not None and begin.tb_frame.f_globals.get("__name__", "").partition(".")[0] in (
        "oplet",
        "oplet_tools",
        "runpy",
        "importlib",
    ):
        begin = begin.tb_next
    if kind is not None and error is not None:
        sys.excepthook(kind, error.with_traceback(begin), begin)
