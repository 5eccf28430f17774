"""Options that several commands share, and the settings that they result in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from oplet import PluginManager

__all__ = [
    "AllCodes",
    "Debug",
    "Delegates",
    "Inputs",
    "Json",
    "ModelFile",
    "ModelFiles",
    "NeededDelegates",
    "NumThreads",
    "OpLibraries",
    "Ops",
    "PluginSwitches",
    "Preferred",
    "Quiet",
    "Raw",
    "Settings",
    "Signature",
    "Wide",
    "argument",
    "check_preferred",
    "option",
    "settings_of",
]

#: Options and arguments whose default is nothing, or is told by the help.
option, argument = partial(typer.Option, show_default=False), partial(typer.Argument, show_default=False)

PluginSwitches = Annotated[
    list[str] | None, option("-p", metavar="no:NAME", help="Leave out a plugin, by its name or its package's.")
]


def check_preferred(preferred: Sequence[str] | None, plugins: PluginManager) -> None:
    """Check that preferences on the command line name installed plugins.

    Elsewhere (environment, project files) an unknown name is only a warning, as it may be meant for another machine.

    Raises:
        BadParameter: a preference names no installed plugin.
    """
    if not preferred:
        return  # before plugins are searched for
    from oplet.toolkit import normalised

    there = {normalised(name) for info in plugins.plugins() for name in (info.name, info.distribution)}
    for text in preferred:
        name = text.rpartition("=")[2].strip()
        if not name or normalised(name) not in there:
            raise typer.BadParameter(
                f"{text!r} names no plugin that is installed; `oplet plugins` lists them.", param_hint="--prefer"
            )


Preferred = Annotated[
    list[str] | None,
    option(
        metavar="[OP=]NAME",
        help="Take this plugin, by its name or its package's, where several serve an op. May be given several times.",
    ),
]
OpLibraries = Annotated[
    list[str] | None,
    option(
        "--custom-op-library",
        metavar="FILE[:FUNCTION[=OP]]",
        help="Take operators from a compiled library (.so), before those of packages. FUNCTION returns the operator, OP is what models "
        "call it; by default the library says. May be given several times. Needs oplet-native-ops.",
    ),
]
Debug = Annotated[bool, option("--debug", help="Show the traceback of an error.")]
Wide = Annotated[bool, option("--wide", help="Show all columns, however narrow the terminal is, and full names.")]
Json = Annotated[bool, option("--json", help="Print JSON.")]
ModelFile = Annotated[Path, argument(metavar="MODEL", help="A .tflite file.")]
_DELEGATE_HELP = (
    "Let a delegate claim nodes. May be given several times. Where two packages bring the name: PACKAGE:NAME. "
    "A value with a comma is quoted, from the shell too: 'NAME:key=\"a,b\"'."
)
_AUTO_HELP = "'auto' takes the fastest of what is installed, see `oplet tune`."
ModelFiles = Annotated[list[Path] | None, argument(metavar="MODEL", help=".tflite files.")]
Inputs = Annotated[
    list[str] | None,
    option(
        "--input",
        "-i",
        metavar="[NAME=]FILE",
        help="A value for an input: .npy, .npz, .json, .png or .jpg. May be given several times; what is not given is random. "
        "Numbers are real values, which are quantized where the input is; see --raw.",
    ),
]
Raw = Annotated[
    bool,
    option(
        "--raw", help="Values are what the tensors hold: a quantized tensor's integers, not the real values that they stand for."
    ),
]
Quiet = Annotated[bool, option("--quiet", "-q", help="Do not tell what was done to inputs: pictures, clamped values.")]
NumThreads = Annotated[int, typer.Option(min=1, metavar="N", help="Threads that kernels may use.")]
Signature = Annotated[
    str | None, option(metavar="KEY", help="The signature to run. Default: the only one, or the first subgraph.")
]
Ops = Annotated[
    list[str] | None,
    option(
        metavar="NAME[:VERSIONS]",
        help="Another op, by default in all versions that are installed: CONV_2D, CONV_2D:1-5, Atan:1. May be given several times.",
    ),
]
AllCodes = Annotated[bool, option("--all-codes", help="Keep operator codes and subgraphs that nothing uses.")]
Delegates = Annotated[
    list[str] | None, option("--delegate", metavar="NAME[:key=value,...]", help=f"{_DELEGATE_HELP} {_AUTO_HELP}")
]
NeededDelegates = Annotated[
    list[str], option("--delegate", metavar="NAME[:key=value,...]", help=f"{_DELEGATE_HELP} {_AUTO_HELP}")
]


@dataclass
class Settings:
    """The values of the common options, given before or after the command's name."""

    debug: bool = False  #: Whether to show tracebacks.
    blocked: list[str] = field(default_factory=list)  #: Names of plugins to switch off.

    def add(self, switches: list[str] | None, debug: bool) -> None:
        """Add the options that were given before or after the command's name: switches of the form "no:PLUGIN", and --debug."""
        self.debug = self.debug or debug
        for switch in switches or ():
            prefix, _, name = switch.partition(":")
            if prefix != "no" or not name:
                raise typer.BadParameter(f"'{switch}' is not of the form no:NAME.", param_hint="-p")
            self.blocked.append(name)

    def plugins(self, libraries: Sequence[str] | None = None) -> PluginManager:
        """Return a manager of all plugins that are not switched off, with libraries of operators added.

        Args:
            libraries: libraries of operators, "FILE", "FILE:FUNCTION" or "FILE:FUNCTION=OP" each.

        Raises:
            OpletError: a library cannot be used.
        """
        from oplet import PluginManager

        plugins = PluginManager().without(self.blocked, "-p no:")
        if libraries:
            from oplet_tools.running.delegates import parse_op_library

            for text in libraries:
                plugins.add_op_library(*parse_op_library(text))
        return plugins


def settings_of(context: typer.Context, switches: list[str] | None, debug: bool) -> Settings:
    """Return the common options of this command line, with -p and --debug from this position (before or after the command) added."""
    settings = context.ensure_object(Settings)
    settings.add(switches, debug)
    return settings
