"""Restores stored (serialized) steps as callables, without importing the kernels that made them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from oplet import Places, RunAnew
from oplet_numba_ops.compiling.machine_code.description import description
from oplet_numba_ops.compiling.machine_code.memory import ImageError, executable

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["restore"]


def restore(facts: Mapping[str, Any], memory: NDArray[np.uint8], places: Places) -> list[Callable[[], None]] | None:
    """Rebuild callables from what `storing` serialized; None if they cannot run here.

    Args:
        facts: the serialized data.
        memory: a private copy of the memory that it has stored, which is changed and kept.
        places: the arena and the model's bytes.
    """
    if facts["processor"] != description():
        return None
    try:
        library = {name: np.frombuffer(found, np.int32) for name, found in facts["code_library"].items()}
        pages, code = executable(facts["code"], np.frombuffer(facts["code_own"], np.int32), library)
    except ImageError:
        return None
    words = memory[: memory.nbytes // 8 * 8].view(np.int64)
    base = memory.ctypes.data
    for kind, value in (("own", base), ("arena", places.arena[0]), ("model", places.model[0]), ("code", code)):
        words[np.frombuffer(facts["moved"][kind], np.int32)] += value
    run = ctypes.CFUNCTYPE(None, ctypes.c_int64)(code + facts["run"])
    thunks: list[Callable[[], None]] = []
    for arguments, marks in zip(facts["calls"], facts["marks"]):
        call: Any = partial(run, base + arguments)
        call.keep = pages, memory, places
        found = [words[mark // 8 :][:1] for mark in marks]
        thunks.append(partial(_checked, call, found) if found else call)
    return thunks


def _checked(call: Callable[[], None], marks: Sequence[NDArray[np.int64]]) -> None:
    """Run jobs that may fail; raise if one has set its error flag.

    Raises:
        RunAnew: one has failed; running the nodes unfused then raises the error.
    """
    call()
    if any(mark[0] for mark in marks):
        for mark in marks:
            mark[0] = 0
        raise RunAnew
