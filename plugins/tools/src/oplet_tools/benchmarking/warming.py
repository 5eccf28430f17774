"""Warm-up before deployment: a model is opened, so that packages compile, and store, what its first run needs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from oplet import Interpreter
from oplet.toolkit import SubgraphRunner, store_plan

if TYPE_CHECKING:
    import os

    from oplet import PluginManager

__all__ = ["COMPILING", "Warmed", "warm_up", "with_progress"]

#: What progress bars say while kernels are compiled.
COMPILING = "compiling kernels, first run only"


@dataclass(frozen=True)
class Warmed:
    """The result of warming a model up.

    Attributes:
        model: the model's name.
        waited: the number of nodes whose compiled kernels were waited for.
        seconds: the time that it took.
    """

    model: str
    waited: int
    seconds: float


def warm_up(
    model: str | os.PathLike[str],
    *,
    num_threads: int = 1,
    plugins: PluginManager | None = None,
    delegates: Sequence[Any] = (),
    progress: Callable[[str, float], None] | None = None,
) -> Warmed:
    """Open a model, allocate its signatures (or first subgraph), wait until kernels are compiled, cache the execution plan.

    Args:
        model: the model's path.
        num_threads: the threads that kernels may use.
        plugins: the plugins that provide kernels; all installed ones by default.
        delegates: the delegates that are applied.
        progress: called with what is being done and the part of it that is done, 0 to 1.

    Raises:
        OpletError: the model cannot be opened, or its tensors not be allocated.
    """
    start = time.perf_counter()
    interpreter = Interpreter(model, num_threads=num_threads, plugins=plugins, experimental_delegates=list(delegates) or None)
    for index in sorted({each.subgraph_index for each in interpreter.model.lazy_root.signature_defs or []}) or [0]:
        SubgraphRunner(interpreter, index).allocate()
    waited = with_progress(interpreter, progress)
    store_plan(interpreter)
    return Warmed(str(model), waited, time.perf_counter() - start)


def with_progress(interpreter: Interpreter, progress: Callable[[str, float], None] | None = None) -> int:
    """Wait until kernels that compile in the background are ready; return the number of nodes that were waited for."""
    waited = 0

    def told(done: int, total: int) -> None:
        nonlocal waited
        waited = total
        if progress is not None:
            progress(COMPILING, done / total)  # one bar: bars are told apart by what they say

    interpreter.warm_up(told)
    return waited
