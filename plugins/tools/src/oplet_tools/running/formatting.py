"""Formatting of a run's values as text and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from oplet.errors import TensorError
from oplet_tools.running.outputs import Score, as_lists, top_scores
from oplet_tools.running.run import RunResult, Value
from oplet_tools.running.values.quantization import dequantize, quantization_of

__all__ = ["as_json", "describe_value", "highest_scores", "preview"]

_HEAD = 6


def describe_value(value: Value) -> tuple[str, str, str]:
    """Return name, type (with quantization) and shape of a value, as text."""
    kind = "string" if value.array.dtype.hasobject else str(value.array.dtype)
    quantization = quantization_of(value.details)
    if quantization is not None:
        kind += f" ({quantization.parameters})"
    return value.name, kind, str(list(value.array.shape))


def preview(value: Value) -> str:
    """Return the first few values as text: of a quantized tensor real values, or integers if `value.raw` or its quantization is
    unusable.
    """
    flat = value.array.reshape(-1)
    shown = flat[:_HEAD]
    if not value.raw:
        try:
            quantization = quantization_of(value.details)
            one = quantization is None or len(quantization.scales) == 1
            shown = dequantize(shown, value.details) if one else value.displayed.reshape(-1)[:_HEAD]
        except TensorError as error:
            return f"{', '.join(map(str, shown.tolist()))}: raw, {error}"
    more = ", ..." if flat.size > _HEAD else ""
    return ", ".join(map(_number, shown.tolist())) + more


def highest_scores(
    result: RunResult,
    count: int,
    labels: Sequence[str],
    file: str,
    complain: Callable[[str], None],
    attached: Mapping[str, Sequence[str]] | None = None,
    without: Collection[str] = (),
) -> dict[str, list[Score]]:
    """Return the highest scores of every output that is one row of numbers, by the output's name.

    Args:
        count: the number of scores of each output.
        labels: labels of the scores, in order.
        file: the labels' file, for messages.
        complain: called with a message if there are too many or too few labels.
        attached: labels of outputs in the model's own file, by the output's name, where `labels` is empty.
        without: names of outputs that are left out.

    Raises:
        TensorError: there is no such output, or its quantization cannot be applied.
    """
    rows = [value for value in result.outputs if 1 < value.array.size == max(value.array.shape, default=1)]
    rows = [value for value in rows if value.name not in without]
    if not rows and not without:
        raise TensorError("No output is one row of scores, so there is nothing that --top and --labels could name.")
    found = {}
    for value in rows:
        if labels and len(labels) != value.array.size:
            complain(f"'{file}' has {len(labels)} labels for {value.array.size} scores.")
        named = labels or (attached or {}).get(value.name, ())
        found[value.name] = top_scores(value.array, value.details, count, named, raw=value.raw)
    return found


def as_json(
    result: RunResult,
    written: str,
    top: dict[str, list[Score]] | None,
    detections: Sequence[Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Return the result of a run, for JSON.

    Args:
        written: the file with the outputs' values; "" to include the values here.
        top: the result of `highest_scores`, None to leave scores out.
        detections: what a detector has found, None to leave it out.

    Raises:
        TensorError: an output's quantization cannot be applied.
    """
    return {
        "signature": result.signature,
        "raw": result.raw,
        "nodes": result.providers,
        **({"choice": result.choice} if result.choice else {}),
        "inputs": [
            {**_as_json(value), "source": value.source, "notices": [notice.as_dict() for notice in value.notices]}
            for value in result.inputs
        ],
        "outputs": [
            {**_as_json(value), **({} if written else {"values": as_lists(value.displayed)})} for value in result.outputs
        ],
        **({} if top is None else {"top": {name: list(map(asdict, scores)) for name, scores in top.items()}}),
        **({} if detections is None else {"detections": list(detections)}),
        **({"written": written} if written else {}),
    }


def _as_json(value: Value) -> dict[str, Any]:
    quantization = quantization_of(value.details)
    told: dict[str, Any] = {
        "name": value.name,
        "type": "string" if value.array.dtype.hasobject else str(value.array.dtype),
        "shape": list(value.array.shape),
    }
    if quantization is not None:
        told["quantization"] = {
            "scales": np.asarray(quantization.scales, np.float64).tolist(),
            "zero_points": quantization.zero_points.tolist(),
            "dimension": quantization.dimension,
        }
    return told


def _number(value: object) -> str:
    if isinstance(value, float | complex) and not isinstance(value, bool):
        return f"{value:.6g}"
    if isinstance(value, bytes):
        text = value[:40].decode(errors="backslashreplace")
        return f"'{text}'" + ("..." if len(value) > 40 else "")
    return str(value)
