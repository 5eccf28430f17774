"""Measures the sensitivity of a model: how far its outputs move when its inputs move by a rounding error."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet_tools.tuning.differences import difference, largest_error
from oplet_tools.tuning.tolerances import PRESETS

__all__ = ["SENSITIVITY_FACTOR", "output_sensitivity"]

Array = NDArray[Any]
Answers = Sequence[Mapping[Any, Array]]

#: An engine as accurate as the built-in kernels may differ from them by so many times what the perturbed inputs showed.
SENSITIVITY_FACTOR = 2.0
#: The number of runs with perturbed inputs.
_PERTURBATIONS = 2


def output_sensitivity(
    answers: Callable[[np.random.Generator | None], Answers], pairs: Mapping[Any, tuple[float, int]]
) -> dict[Any, float]:
    """Return the error that each output may have, as a fraction of its largest magnitude: twice its change under perturbed inputs.

    It is 0 for outputs that differ between runs on equal inputs (random ops), or change to another shape or infinity.

    Args:
        answers: runs the model and returns its outputs by key, one mapping per run, on inputs perturbed by the given generator, or
            unchanged for None.
        pairs: each output's quantization scale and zero point, (0, 0) if it is not quantized.
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
