"""Unary maps of unquantized numbers: signs, roundings, and C library functions; the latter for so few numbers that a numpy call
would take longer.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from oplet import TensorType
from oplet_compiled_ops.elementwise.maps.functions import gelu, gelu_by_tanh
from oplet_compiled_ops.library.kernels import Kernel, family
from oplet_compiled_ops.library.lazy import inlined
from oplet_compiled_ops.recurrent.gates import tanh

__all__ = ["FLOATS", "SIGNED", "map_kernels"]

#: Types, in numba's notation.
FLOATS = {TensorType.FLOAT32: "f4"}
SIGNED = {TensorType.INT8: "i1", TensorType.INT16: "i2", TensorType.INT32: "i4", TensorType.INT64: "i8"}

_inlined: Any = inlined(inline="always", error_model="numpy", boundscheck=False)


@_inlined
def _sign(x):  # type: ignore[no-untyped-def]
    # NaN stays NaN.
    return x if x != x else (x > 0) - (x < 0)


@_inlined
def _is_zero(x):  # type: ignore[no-untyped-def]
    return x == 0


_RULES: dict[str, Any] = {
    "absolute": np.absolute,
    "negative": np.negative,
    "ceil": np.ceil,
    "floor": np.floor,
    "rint": np.rint,
    "sign": _sign,
    "square": np.square,
    "root": np.sqrt,
    "is_zero": _is_zero,
    "exp": np.exp,
    "log": np.log,
    "tanh": tanh,
    "gelu": gelu,
    "gelu_by_tanh": gelu_by_tanh,
}


def _members() -> Iterator[tuple[str, str]]:
    yield from product([rule for rule in _RULES if rule != "is_zero"], FLOATS.values())
    yield from product(("absolute", "negative", "sign"), SIGNED.values())
    yield from (("sign", "f8"), ("is_zero", "u1"))


@family(_members)
def _kernel(rule: str, code: str) -> Kernel:
    value = _RULES[rule]

    def plain_map(x, out):  # type: ignore[no-untyped-def]
        for i in range(out.size):
            out[i] = value(x[i])

    plain_map.__name__ = f"map_{rule}"
    return Kernel(plain_map, f"void({code}[::1], {code}[::1])")


def map_kernels(rule: str, codes: dict[TensorType, str]) -> dict[TensorType, Kernel]:
    """Return, for each type, the kernel that computes out[i] = rule(x[i]).

    Args:
        rule: the name of a function of this module's table of rules.
        codes: the types, with their names in numba's notation ("f4").
    """
    return {type: _kernel(rule, code) for type, code in codes.items()}
