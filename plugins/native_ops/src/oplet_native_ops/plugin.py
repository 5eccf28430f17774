"""Plugin hooks: opens shared libraries of operators and delegates, and adds the command `oplet native`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from oplet import BuiltinOperator, CommandRegistry, DelegateRegistry, MutableOpResolver, hookimpl

#: The version of oplet's plugin API that this package is written for.
OPLET_API = "1"

_LIBRARY_NAME = re.compile(r".+\.(so(\.\d+)*|dylib|dll)", re.DOTALL)


@hookimpl
def register_commands(registry: CommandRegistry) -> None:
    """Add the command `oplet native`."""
    registry.add("native", "oplet_native_ops.commands.app:app", "Write and compile packages of C and C++ operators.")


@hookimpl
def open_op_library(path: str, operators: Mapping[str | BuiltinOperator, str] | str | None) -> MutableOpResolver | None:
    """Open a shared library of operators for `--custom-op-library`; None if the file is not one."""
    if not _LIBRARY_NAME.fullmatch(path) and not _is_elf(path):
        return None
    from oplet_native_ops.ops.loading import load_ops

    return load_ops(path, operators)


def _is_elf(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False


@hookimpl
def register_delegates(registry: DelegateRegistry) -> None:
    """Register loading of delegates from shared libraries, for `load_delegate` and `--delegate`."""
    registry.add_loader("oplet_native_ops.delegates.delegate:load_delegate_library")
