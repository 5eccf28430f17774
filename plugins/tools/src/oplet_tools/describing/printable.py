"""Options of nodes and values of constants, ready for JSON: what a reader of a model looks at first."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet.schema.flexbuffers import read_flexbuffer
from oplet.schema.table import Table

__all__ = ["MOST_VALUES", "custom_options_of", "one_line_of", "plain_options", "plain_values"]

#: Elements up to which the values of a constant are told: those of axes, paddings, permutations and shapes, not of weights.
MOST_VALUES = 64
#: Bytes of custom options in no known form that are told.
_MOST_BYTES = 256


def plain_options(options: Table) -> dict[str, Any]:
    """Return the values of an operator's options by their names, ready for JSON."""
    return {f.name: _plain(getattr(options, f.name)) for f in options.fields}


def custom_options_of(data: bytes) -> Any:
    """Return a node's custom options for JSON: a FlexBuffers map or list decoded, None if there are none, else hexadecimal bytes
    (at most the first 256).
    """
    if not data:
        return None
    try:
        found = read_flexbuffer(data)
    except ValueError:
        found = None
    # A few bytes of another form may happen to be a FlexBuffer of a single number.
    if isinstance(found, dict | list):
        return _plain(found)
    return data[:_MOST_BYTES].hex() + ("..." if len(data) > _MOST_BYTES else "")


def plain_values(values: NDArray[Any]) -> Any:
    """Return an array as nested lists, ready for JSON: byte strings as text, or in hexadecimal if they are not text."""
    if values.dtype.kind not in "biufcO":  # types of ml_dtypes
        values = values.astype(np.float32)
    return _plain(values.tolist())


def one_line_of(value: Any) -> str:
    """Format options or values, of JSON types, as one line for people: "name=value, ..." without quotes."""
    if isinstance(value, dict):
        return ", ".join(f"{name}={_inner(inner)}" for name, inner in value.items())
    return _inner(value)


def _inner(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{one_line_of(value)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_inner, value))}]"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _plain(value: Any) -> Any:
    """Convert a value to JSON types."""
    if hasattr(value, "name"):
        return value.name
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, bytes):
        try:
            text = value.decode("utf-8")
        except UnicodeDecodeError:
            return value.hex()
        return text if text.isprintable() else value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return (
            "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        )  # no number of JSON, which browsers refuse
    if isinstance(value, complex):
        return [_plain(value.real), _plain(value.imag)]
    if isinstance(value, Table):
        return plain_options(value)
    if isinstance(value, dict):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
