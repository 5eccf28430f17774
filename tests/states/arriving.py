"""States of compiled kernels within one process: never there, there for some nodes, or there after the first allocation."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import pytest

from oplet.runtime.memory.remembered import forget_plans
from oplet_compiled_ops.compiling import background
from oplet_compiled_ops.compiling.kernels import Kernel

__all__ = ["STATES", "enter"]

#: By the state's name: whether a kernel is missing while a node is prepared, and whether it is there when its node is asked for a better one.
STATES: dict[str, tuple[Callable[[Kernel], bool], bool]] = {
    "never there": (lambda kernel: True, False),
    "half there": (lambda kernel: bool(zlib.crc32(repr((kernel.function.__name__, kernel.signature)).encode()) & 1), False),
    "arriving": (lambda kernel: True, True),
    "half arriving": (lambda kernel: not zlib.crc32(repr((kernel.signature, kernel.function.__name__)).encode()) & 1, True),
}


class _Awaited:
    """Stands for a kernel that a node waits for."""

    error = ""

    def __init__(self, is_there: bool) -> None:
        self.has_entry = is_there


def enter(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have this process's kernels be in a state of `STATES`, as if other processes compiled them, until the patch is undone."""
    is_missing, arrives = STATES[state]
    monkeypatch.setenv(background.VARIABLE, "first")
    monkeypatch.setenv("OPLET_PLANS", "off")  # they would answer in the place of the nodes that this is about
    forget_plans()
    load = Kernel.load

    def provided(kernel: Kernel) -> bool:
        missing = getattr(background._local, "missing", None)
        if missing is not None and is_missing(kernel):
            if arrives and not load(kernel):
                kernel.adopt(kernel.made())
            missing.append(_Awaited(arrives))
            return True
        return load(kernel)

    monkeypatch.setattr(Kernel, "load", provided)
    monkeypatch.setattr(
        Kernel,
        "has_entry",
        property(lambda kernel: kernel._entry is not None and getattr(background._local, "missing", None) is None),
    )
