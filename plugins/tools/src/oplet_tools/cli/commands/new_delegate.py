"""`oplet new-delegate`: write a package that provides a delegate."""

from __future__ import annotations

from typing import Annotated

import typer

from oplet_tools.cli.commands.new_op import Directory, License, Package, print_next_steps
from oplet_tools.cli.settings import Debug, argument, settings_of

__all__ = ["new_delegate"]


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
