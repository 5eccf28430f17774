"""Random numbers for the tests' inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["numbers"]


def numbers(*shape: int) -> Any:
    """Normally distributed float32 of this shape, the same each time."""
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)
