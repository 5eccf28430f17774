"""Whether oplet contradicts LiteRT about a model of one operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from tests.differential.worker import Answer, run_steps

from oplet import Interpreter
from oplet.errors import OpletError

from .kit import Single

Array = np.ndarray[Any, Any]


def contradiction(single: Single, theirs: Mapping[str, Answer]) -> str:
    """How oplet contradicts all of LiteRT's ways that run a model; "" if it agrees with one, or none runs it.

    An answer begins with "refuses" or "differs". Anything but an OpletError goes up.
    """
    ran = {way: answer for way, answer in theirs.items() if answer.kind == "ran"}
    if not ran:
        return ""
    ours = run_steps(Interpreter, single.model, [single.feeds], OpletError)
    if ours.kind != "ran":
        return f"refuses what {', '.join(ran)} run: {ours.message}"
    found = {way: difference(ours.outputs[0], answer.outputs[0], _tolerance(single.name)) for way, answer in ran.items()}
    return f"differs from {found}" if all(found.values()) else ""


def _tolerance(name: str) -> float:
    """By how much floats may differ, of their size and of the largest: some last bits."""
    return 2e-2 if "BFLOAT16" in name else 2e-3 if "FLOAT16" in name else 1e-5


def difference(ours: Sequence[Array], theirs: Sequence[Array], tolerance: float) -> str:
    """Where outputs differ; "" if nowhere: floats within a tolerance, everything else exactly."""
    for number, (a, b) in enumerate(zip(ours, theirs)):
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            return f"output {number}: {a.dtype} {list(a.shape)}, LiteRT {b.dtype} {list(b.shape)}"
        if a.dtype.kind in "fcV":
            x, y = a.astype(np.complex128), b.astype(np.complex128)
            finite = np.abs(y[np.isfinite(y)])
            wrong = ~np.isclose(x, y, tolerance, tolerance * float(finite.max(initial=1e-30)), equal_nan=True)
        else:
            wrong = np.asarray(a != b)
        if wrong.any():
            return f"output {number}: {int(wrong.sum())} of {a.size}: {a[wrong][:3].tolist()}, LiteRT {b[wrong][:3].tolist()}"
    return ""
