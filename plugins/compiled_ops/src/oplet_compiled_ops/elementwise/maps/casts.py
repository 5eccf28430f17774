"""CAST of integers, element by element: to float32, and between those of 32 and 64 bits, which wrap around."""

from __future__ import annotations

from oplet import TensorType
from oplet_compiled_ops.library.kernels import Kernel, family

__all__ = ["CASTS", "cast_kernel"]

_CODES = {
    TensorType.BOOL: "u1", TensorType.INT8: "i1", TensorType.UINT8: "u1", TensorType.INT16: "i2", TensorType.INT32: "i4",
    TensorType.INT64: "i8", TensorType.FLOAT32: "f4",
}  # fmt: skip
_PAIRS: list[tuple[TensorType, TensorType]] = [
    (source, TensorType.FLOAT32) for source in _CODES if source is not TensorType.FLOAT32
]
_PAIRS += [(TensorType.INT32, TensorType.INT64), (TensorType.INT64, TensorType.INT32), (TensorType.BOOL, TensorType.INT32)]
#: The types from which and to which casts are compiled, and the constants of their kernels.
CASTS: dict[tuple[TensorType, TensorType], tuple[str, str, bool]] = {
    (source, target): (_CODES[source], _CODES[target], source is TensorType.BOOL) for source, target in _PAIRS
}


@family(CASTS.values)
def cast_kernel(source: str, target: str, boolean: bool) -> Kernel:
    """Build the kernel that casts `source` to `target`, in numba's notation; `boolean` numbers are 1 if they are not 0."""

    def cast(x, out):  # type: ignore[no-untyped-def]
        for i in range(out.size):
            out[i] = x[i] != 0 if boolean else x[i]

    return Kernel(cast, f"void({source}[::1], {target}[::1])")
