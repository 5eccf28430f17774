"""Candidates, trials and arrays as JSON, for the cache of choices and for the process that measures."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet_tools.tuning.candidates import Candidate
from oplet_tools.tuning.trials import Trial

__all__ = ["read_array", "read_candidate", "read_trial", "written", "written_array"]


def written(value: Candidate | Trial) -> dict[str, Any]:
    """Convert a candidate or trial (its measurement) to a JSON object."""
    return asdict(value)


def read_candidate(content: Mapping[str, Any]) -> Candidate:
    """Restore a candidate from the JSON object that `written` made.

    Raises:
        ValueError: the object has another form (this also raises KeyError, TypeError or AttributeError).
    """
    texts = content["kernels"], *content["prefer"], *content["delegates"]
    if len(content) != 3 or not all(isinstance(text, str) for text in texts):
        raise ValueError("a name is no text, or there is more than names")
    return Candidate(content["kernels"], tuple(content["prefer"]), tuple(content["delegates"]))


def read_trial(content: Mapping[str, Any]) -> Trial:
    """Restore a trial from the JSON object that `written` made.

    Raises:
        ValueError: the object has another form (this also raises KeyError, TypeError or AttributeError).
    """
    seconds, error, nodes, why, crashed, ready = (
        content[name] for name in ("seconds", "error", "nodes", "why", "crashed", "ready")
    )
    numbers = *(value for value in (seconds, error, ready) if value is not None), nodes, *content["claimed"]
    if not isinstance(why, str) or not all(not n < 0 and (isinstance(n, float) or n >> 53 == 0) for n in numbers):
        raise ValueError("what came out for a candidate is no number, or its reason no text")
    return Trial(
        read_candidate(content["candidate"]), seconds, error, tuple(content["claimed"]), nodes, why, bool(crashed), ready
    )


def written_array(values: NDArray[Any]) -> dict[str, Any]:
    """Convert an array of numbers to a JSON object."""
    data = base64.b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii")
    return {"dtype": str(values.dtype), "shape": list(values.shape), "data": data}


def read_array(content: Mapping[str, Any]) -> NDArray[Any]:
    """Restore an array from the JSON object that `written_array` made."""
    flat: NDArray[Any] = np.frombuffer(base64.b64decode(content["data"]), np.dtype(content["dtype"]))
    values: NDArray[Any] = flat.reshape(content["shape"]).copy()
    return values
