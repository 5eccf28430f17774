"""All kernels that a level's library holds: those of modules, and the members of families."""

from __future__ import annotations

import functools
import importlib
import pkgutil

import oplet_compiled_ops
from oplet_compiled_ops.library.kernels import FAMILIES, Kernel, known
from oplet_compiled_ops.library.levels import LEVELS, Level, using

__all__ = ["kernels_of"]

_OWN = "oplet_compiled_ops.compiling"


@functools.cache
def _of_modules() -> tuple[Kernel, ...]:
    for module in pkgutil.walk_packages(oplet_compiled_ops.__path__, "oplet_compiled_ops."):
        if not module.name.startswith(_OWN):
            importlib.import_module(module.name)
    return tuple(kernel for kernel in known if not kernel.is_member)


@functools.cache
def _by_name(level: str) -> list[Kernel]:
    found: dict[str, Kernel] = {}
    with using(LEVELS[level]):
        made = [*_of_modules(), *(make(*constants) for make, constants_of in FAMILIES for constants in constants_of())]
        for kernel in made:
            kernel.function  # noqa: B018 (made for this level)
    for kernel in made:
        if found.setdefault(kernel.name, kernel) is not kernel:
            raise ValueError(f"Two kernels are named {kernel.name}.")
    return [found[name] for name in sorted(found)]


def kernels_of(level: Level) -> list[Kernel]:
    """Return the kernels of a processor level's library, sorted by name.

    Raises:
        ValueError: two kernels have the same name.
    """
    return _by_name(level.name)
