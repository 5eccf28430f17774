"""Parser of kernel signatures in numba's notation, "void(f4[:,::1], f4[::1], i8)", without numba."""

from __future__ import annotations

import numpy as np

from oplet.records import Row

__all__ = ["Kind", "kinds"]


class Kind(Row):
    """The type of one argument: dtype and number of dimensions, 0 for a scalar.

    Attributes:
        dtype: the type of its numbers.
        ndim: the number of dimensions of a contiguous array; 0 for a number.
    """

    dtype: np.dtype
    ndim: int

    @property
    def is_float(self) -> bool:
        return self.dtype.kind == "f"


def kinds(signature: str) -> tuple[Kind, ...]:
    """Parse a signature; return the types of its arguments."""
    text = signature.removeprefix("void(").removesuffix(")")
    parts = [part.partition("[") for part in text.split(", ")]  # no axes have ", " within
    return tuple([Kind(np.dtype(number), axes.count(",") + 1 if axes else 0) for number, _, axes in parts])
