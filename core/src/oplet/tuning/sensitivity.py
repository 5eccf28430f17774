"""How far a model itself moves its outputs when its inputs move by what no engine can be blamed for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet.tuning.differences import difference, largest_error
from oplet.tuning.tolerances import PRESETS

__all__ = ["SENSITIVITY_FACTOR", "output_sensitivity"]

Array = NDArray[Any]
Answers = Sequence[Mapping[Any, Array]]

#: An engine that is as right as the built-in kernels may be off by so many times what was seen.
SENSITIVITY_FACTOR = 2.0
#: How often the inputs are nudged to see what the model makes of it.
_PERTURBATIONS = 2


def output_sensitivity(
    answers: Callable[[np.random.Generator | None], Answers], pairs: Mapping[Any, tuple[float, int]]
) -> dict[Any, float]:
    """By which part of its scale each output may be off: twice as far as nudged inputs move it.

    0 for outputs that move by themselves from run to run: what comes of random numbers says nothing here; nor does what moves to
    another shape or to where it is not finite.

    Args:
        answers: the outputs of successive runs, by a key each; of inputs that are nudged by this generator, or as they are.
        pairs: each output's scale and zero point.
    """
    random = np.random.default_rng(0)
    wanted, again = answers(None), answers(None)
    steady = _moved(again, wanted, pairs)
    moved = [_moved(answers(random), wanted, pairs) for _ in range(_PERTURBATIONS)]
    return {
        key: SENSITIVITY_FACTOR * max((m[key] for m in moved if np.isfinite(m[key])), default=0.0) if not steady[key] else 0.0
        for key in pairs
    }


def _moved(got: Answers, wanted: Answers, pairs: Mapping[Any, tuple[float, int]]) -> dict[Any, float]:
    return {
        key: max(
            (largest_error([difference(one[key], other[key], PRESETS["strict"], pair)]) for one, other in zip(got, wanted)),
            default=0.0,
        )
        for key, pair in pairs.items()
    }
