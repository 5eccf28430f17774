"""Differential fuzzing: the outcome of an engine is compared with that of numpy's kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fuzz.exercise import Run
from fuzz.run_model import Outcome
from oplet import TensorType

__all__ = ["compare_with_numpy"]

#: Tolerance as a fraction of the largest value; another order of summation makes smaller differences.
_TOLERANCE = 1e-3
#: Largest output that is compared, in bytes.
_MOST_COMPARED = 64 << 20

#: Operators with random results.
_RANDOM = frozenset({"MULTINOMIAL", "RANDOM_STANDARD_NORMAL", "RANDOM_UNIFORM", "STABLEHLO_RNG_BIT_GENERATOR"})

#: Operators whose integer results differ from LiteRT's, see docs/differences.md: shifts by more bits than the type has.
_KNOWN = frozenset({"STABLEHLO_SHIFT_LEFT"})

_FLOATS = frozenset({TensorType.FLOAT16, TensorType.FLOAT32, TensorType.FLOAT64, TensorType.BFLOAT16, TensorType.COMPLEX64})

Again = Callable[[str], tuple[Outcome, Run]]


def compare_with_numpy(outcome: Outcome, run: Run, engine: str, again: Again) -> Outcome:
    """Compare an outcome with that of numpy's kernels.

    Args:
        again: runs the same model in the same way with the engine of a given name.

    Returns:
        The outcome; if numpy's differs, one of kind "wrong" where both must agree to the bit, else "differs".
    """
    compiled = engine == "compiled"
    if outcome.kind not in ("ok", "refused") or outcome.error in ("ModelError", "DeadlineError", "CancelledError", "LimitError"):
        return outcome
    if not compiled and not run.claimed():
        return outcome
    if run.operators() & _RANDOM:
        return outcome
    other, reference = again("numpy")
    if other.kind not in ("ok", "refused") or other.error in ("DeadlineError", "CancelledError", "LimitError"):
        return outcome
    if other.kind != outcome.kind:
        said = outcome if outcome.kind == "refused" else other
        who = engine if outcome.kind == "refused" else "numpy"
        return Outcome("differs", outcome.stage, "refused", f"{who} alone: {said.error}", said.message)
    found = _difference(run.outputs, reference.outputs)
    if not found:
        return outcome
    if _difference(run.outputs, again(engine)[1].outputs):
        return outcome  # not deterministic: uninitialized memory or timing decides
    exact = _exact(run, quantized=compiled)
    operators = " ".join(sorted(run.operators()))[:80]
    return Outcome("wrong" if exact else "differs", "read", "values", operators, found)


def _exact(run: Run, quantized: bool) -> bool:
    """Whether all values are integers, so that the results must be equal."""
    tensors = [tensor for subgraph in run.runner._subgraphs for tensor in subgraph.tensors]
    if not quantized and run.operators() & _KNOWN:
        return False
    if any(t.dtype == np.bool_ and t.has_data and (t.data.reshape(-1).view(np.uint8) > 1).any() for t in tensors):
        return False  # bytes other than 0 and 1, which are undefined for C++ booleans
    return not any(t.type in _FLOATS or (not quantized and t.quantization is not None) for t in tensors)


def _difference(mine: list[Any], theirs: list[Any]) -> str:
    """A description of the first difference between outputs; "" if there is none."""
    if len(mine) != len(theirs):
        return f"{len(mine)} outputs, {len(theirs)} with numpy"
    for index, (a, b) in enumerate(zip(mine, theirs)):
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"output {index} is {a.dtype} {a.shape}, {b.dtype} {b.shape} with numpy"
        if a.nbytes > _MOST_COMPARED:
            continue  # comparing them would take longer than the time limit, which still applies
        same = _alike(a, b) if a.dtype.kind in "fc" else a == b
        if not np.all(same):
            at = int(np.argmin(np.asarray(same).reshape(-1)))
            values = f"{a.reshape(-1)[at]!r}, {b.reshape(-1)[at]!r} with numpy"
            return f"output {index}, {int(np.size(same) - np.sum(same))} of {a.size} values, the first at {at}: {values}"
    return ""


def _alike(a: Any, b: Any) -> Any:
    with np.errstate(all="ignore"):
        finite = np.isfinite(a) & np.isfinite(b)
        most = float(np.max(np.abs(np.where(finite, b, 0)), initial=0.0))
        near = np.abs(np.where(finite, a, 0) - np.where(finite, b, 0)) <= _TOLERANCE * max(most, 1e-30)
        return np.where(finite, near, (a == b) | (np.isnan(a) & np.isnan(b)))
