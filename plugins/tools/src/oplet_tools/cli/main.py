"""The entry point of the command `oplet`: every error is one line, with a traceback only under --debug."""

from __future__ import annotations

import functools
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None, program: str = "oplet") -> None:
    """Run the command and exit: 0 if all went well, 1 after an error, 2 for wrong usage.

    Args:
        arguments: the command line without the program's name; by default that of the process.
        program: the program's name in the help.
    """
    try:
        _run(sys.argv[1:] if arguments is None else arguments, program)
    except KeyboardInterrupt:  # before the command began, which ends so itself
        sys.exit(130)
    except ModuleNotFoundError as error:
        if error.name not in ("oplet", "oplet.errors"):
            raise
        sys.exit("oplet: oplet-core is not installed, or not whole; install it with: pip install --force-reinstall oplet-core")


def _run(arguments: Sequence[str], program: str) -> None:
    from oplet_tools.cli.settings import Settings

    settings = Settings()
    _log_to_stderr()
    _print_anything()
    try:
        _command()(list(arguments), prog_name=program, obj=settings)
    except Exception as error:
        if settings.debug:
            raise
        from oplet_tools.cli.notices import say

        say(_message(error))
        sys.exit(1)


@functools.cache  # reading the signatures of all commands takes as long as many of them
def _command() -> Any:
    import typer

    from oplet_tools.cli.app import app

    return typer.main.get_command(app)


def _message(error: Exception) -> str:
    from oplet.errors import OpletError, text_of

    if isinstance(error, OpletError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return f"{_place(error.filename)}: {error.strerror}" if error.filename else error.strerror
    return f"unexpected {text_of(error, named=True)} (--debug shows where; please report it)"


def _place(name: object) -> str:
    """Return the path of a failed file operation; of a folder that is only called ".", the whole path."""
    text = os.fsdecode(name) if isinstance(name, (str, bytes, os.PathLike)) else str(name)
    return os.path.abspath(text) if text in (".", "..") else text


class _Formatter(logging.Formatter):
    """Formats records as lines on standard error are, wrapped where that is a terminal, with control characters escaped."""

    def format(self, record: logging.LogRecord) -> str:
        from oplet_tools.cli.notices import said

        return said(f"{record.levelname.lower()}: {record.getMessage()}")


def _print_anything() -> None:
    """Have characters that standard output's encoding lacks, a code page's in a pipe on Windows, written as standard error has them:
    escaped.
    """
    with suppress(AttributeError, OSError, ValueError):  # a program may have put something else in its place
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def _log_to_stderr() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter())
    logger = logging.getLogger("oplet")
    logger.handlers = [handler]
    logger.propagate = False
