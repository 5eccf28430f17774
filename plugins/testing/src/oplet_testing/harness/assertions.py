"""Assertions of the contracts, independent of the test framework that collects them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["check", "identical", "type_described"]


def check(condition: object, message: str) -> None:
    """Fail the test unless `condition` holds.

    Raises:
        AssertionError: the condition is false.
    """
    if not condition:
        raise AssertionError(message)


def identical(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Return whether two arrays have the same shape, dtype and bytes; arrays of objects are compared element by element."""
    if one.dtype.hasobject:
        return bool(np.array_equal(one, other))
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


def type_described(value: object) -> str:
    """Describe the type of a value, for a message about a contract's attribute: "missing", "a list of int", "of the type str"."""
    if isinstance(value, (list, tuple)):
        return f"a {type(value).__name__} of {', '.join(sorted({type(each).__name__ for each in value})) or 'nothing'}"
    return "missing" if value is None else f"of the type {type(value).__name__}"
