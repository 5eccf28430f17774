"""Values of a run as text."""

from __future__ import annotations

from oplet.tools.outputs import dequantize
from oplet.tools.run import Value

__all__ = ["described", "head"]

_HEAD = 6


def described(value: Value) -> tuple[str, str, str]:
    """Name, type and shape of a value."""
    kind = "string" if value.array.dtype.hasobject else str(value.array.dtype)
    scale, zero_point = value.details["quantization"]
    if scale:
        kind += f" (scale {scale:.6g}, zero point {zero_point})"
    return value.name, kind, str(list(value.array.shape))


def head(value: Value) -> str:
    """The first values, of quantized tensors the real numbers."""
    flat = value.array.reshape(-1)
    shown = dequantize(flat[:_HEAD], value.details).tolist()
    more = ", ..." if flat.size > _HEAD else ""
    return ", ".join(map(_number, shown)) + more


def _number(value: object) -> str:
    if isinstance(value, float | complex) and not isinstance(value, bool):
        return f"{value:.6g}"
    if isinstance(value, bytes):
        text = value[:40].decode(errors="backslashreplace")
        return f"'{text}'" + ("..." if len(value) > 40 else "")
    return str(value)
