"""The commands behind `oplet native`."""

from __future__ import annotations

import json as json_
import shlex
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["app"]

app = typer.Typer(help="Write and compile packages of C and C++ operators.", no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="Print JSON.", show_default=False)]


@app.command("new-op", short_help="Write a package that brings an op in C++.")
def new_op(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What models call the op: Atan.", show_default=False)],
    directory: Annotated[
        Path | None,
        typer.Option(
            "--directory", "-d", metavar="DIR", help="Where to write it. Default: a new folder here.", show_default=False
        ),
    ] = None,
    license: Annotated[
        str, typer.Option("--license", metavar="SPDX", help="The package's licence: Apache-2.0, MIT.")
    ] = "Apache-2.0",
    package: Annotated[
        str | None, typer.Option("--package", metavar="NAME", help="Its name for pip: acme-ops.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """Write a package that brings an op in C++, which `pip install .` compiles, with tests that pass at once."""
    from oplet_native_ops.commands.scaffold import new_op

    folder = new_op(name, directory, license=license, package=package)
    files = sorted(str(path) for path in folder.rglob("*") if path.is_file() and "include" not in path.relative_to(folder).parts)
    if json:
        typer.echo(json_.dumps({"folder": str(folder), "files": files}, indent=2))
        return
    for file in [*files, f"{folder / 'native' / 'include'} (LiteRT's public C API)"]:
        typer.echo(file)
    [draft] = folder.glob("src/*/__init__.py")
    typer.echo(
        f"\nIt is a draft that runs no model. Once the library computes what {name} means, set\nFINISHED = True in {draft}.\n"
    )
    typer.echo(f'cd {shlex.quote(str(folder))} && pip install -e ".[test]" && pytest')


@app.command(short_help="Print the options to compile operators with.")
def cflags(json: Json = False) -> None:
    """Print the options with which a library of operators is compiled: cc $(oplet native cflags) -o libatan.so atan.c"""
    from oplet_native_ops.headers import cflags

    typer.echo(json_.dumps(cflags(), indent=2) if json else shlex.join(cflags()))
