"""`oplet new-op`: write a package that provides an op.

`oplet new-delegate`: write a package that provides a delegate.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from oplet_tools.cli.settings import Debug, argument, option, settings_of

__all__ = ["Directory", "License", "Package", "new_op", "print_next_steps"]

Directory = Annotated[
    Path | None, option("--directory", "-d", metavar="DIR", help="Where to write it. Default: a new folder here.")
]
License = Annotated[str, typer.Option("--license", metavar="SPDX", help="The package's licence: Apache-2.0, MIT.")]
Package = Annotated[str | None, option("--package", metavar="NAME", help="Its name for pip: acme-ops.")]


def new_op(
    context: typer.Context,
    name: Annotated[str, argument(metavar="NAME", help="The op's name in models: Atan.")],
    directory: Directory = None,
    builtin: Annotated[
        bool, typer.Option("--builtin", help="NAME is a built-in operator: serve it in place of the usual kernel.")
    ] = False,
    package: Package = None,
    license: License = "Apache-2.0",
    debug: Debug = False,
) -> None:
    """Write a package that brings an op, with tests that pass at once."""
    settings_of(context, None, debug)
    from oplet_tools.scaffolding.scaffold import new_op

    print_next_steps(new_op(name, directory, builtin=builtin, license=license, package=package))


def print_next_steps(folder: Path, *needs: str) -> None:
    """Print the new package's folder and the next commands.

    Args:
        folder: the folder of the new package.
        needs: the packages of this project that the tests need besides `oplet-testing`.
    """
    from oplet.toolkit import install_first
    from oplet_tools.cli.console import Printer

    printer = Printer()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        printer.line(str(file))
    printer.line()
    if drafts := [file for file in folder.glob("src/*/__init__.py") if "\nFINISHED = False\n" in file.read_text("utf-8")]:
        # The tests pass, pip installs it, and no model has it: that is to be known before.
        printer.line(
            f"It is a draft, which runs no model: once its kernel computes what the op means, set FINISHED = True in {drafts[0]}.",
            "yellow",
        )
        printer.line()
    first = install_first("oplet-testing", *needs)
    printer.line(f'{first}cd {folder} && pip install -e ".[test]" && pytest', "bold")


def new_delegate(
    context: typer.Context,
    name: Annotated[str, argument(metavar="NAME", help="The delegate's name.")],
    directory: Directory = None,
    package: Package = None,
    license: License = "Apache-2.0",
    debug: Debug = False,
) -> None:
    """Write a package that brings a delegate, with tests that pass at once."""
    settings_of(context, None, debug)
    from oplet.toolkit import BUILTIN_OPS
    from oplet_tools.scaffolding.scaffold import new_delegate

    print_next_steps(new_delegate(name, directory, license=license, package=package), BUILTIN_OPS)
