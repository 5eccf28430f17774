"""Makes stored (serialized) jobs of a model's nodes callable in another process, without importing the kernels that made them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from oplet import StalePlanError
from oplet_compiled_ops.library.opening import MissingKernelError, library

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["restore"]


def restore(
    facts: Mapping[str, Any], memory: NDArray[np.uint8], arena: NDArray[np.uint8], model: NDArray[np.uint8]
) -> list[Callable[[], None]] | None:
    """Return callables, one per stored step, from what `storing` serialized; None if they cannot run here (another
    processor, say).

    Args:
        facts: the serialized data but for the memory.
        memory: a private copy of the memory that was stored; pointers in it are changed, and the callables keep it.
        arena: the memory that tensors share in this process.
        model: the model's bytes in this process.
    """
    try:
        kernels = library()
    except MissingKernelError:
        return None
    if facts["library"] != kernels.identity:
        return None
    words = memory[: memory.nbytes // 8 * 8].view(np.int64)
    base = memory.ctypes.data
    moved = ("own", base), ("arena", arena.ctypes.data), ("model", model.ctypes.data), ("code", kernels.anchor)
    for kind, value in moved:
        words[np.frombuffer(facts["moved"][kind], np.int32)] += value
    run = ctypes.CFUNCTYPE(None, ctypes.c_int64)(kernels.anchor + facts["run"])
    thunks: list[Callable[[], None]] = []
    for arguments, marks in zip(facts["calls"], facts["marks"]):
        call: Any = partial(run, base + arguments)
        call.keep = memory
        found = [words[mark // 8 :][:1] for mark in marks]
        thunks.append(partial(_checked, call, found) if found else call)
    return thunks


def _checked(call: Callable[[], None], marks: Sequence[NDArray[np.int64]]) -> None:
    """Call `call`, which runs nodes that may fail; raise if one has set its error flag (`marks`), after clearing all flags.

    Raises:
        StalePlanError: a node has failed; running the nodes one by one then raises its error.
    """
    call()
    if any(mark[0] for mark in marks):
        for mark in marks:
            mark[0] = 0
        raise StalePlanError
