"""Formatting of a run's values as text and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from oplet.errors import TensorError
from oplet_tools.metadata.output_rules import OutputRules, Reporter, output_rules
from oplet_tools.running.detecting import Objects, detector_in, objects_in, picture_input
from oplet_tools.running.outputs import Score, as_lists, top_scores
from oplet_tools.running.run import RunResult, Value
from oplet_tools.running.values.quantization import dequantize, quantization_of

__all__ = ["as_json", "describe_value", "highest_scores", "objects_of", "preview", "rules_of", "score_rows"]

_HEAD = 6


def describe_value(value: Value) -> tuple[str, str, str]:
    """Return a value's name, type (with quantization) and shape, as texts."""
    kind = "string" if value.array.dtype.hasobject else str(value.array.dtype)
    quantization = quantization_of(value.details)
    if quantization is not None:
        kind += f" ({quantization.parameters})"
    return value.name, kind, str(list(value.array.shape))


def preview(value: Value) -> str:
    """Return the first few elements of a value as text: real values for a quantized tensor, integers if `value.raw` or if its
    quantization cannot be applied.
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
    rules: Mapping[str, OutputRules] | None = None,
) -> dict[str, list[Score]]:
    """Return the highest scores of every output that is one row of numbers, by the output's name.

    Args:
        count: the number of scores of each output.
        labels: labels of the scores, in order.
        file: the labels' file, for messages.
        complain: called with a warning if there are too many or too few labels.
        rules: calibration and threshold of outputs' scores, by the model's metadata, and labels that apply where `labels` is empty.

    Raises:
        TensorError: there is no such output, or its quantization cannot be applied.
    """
    rows = score_rows(result)
    if not rows:
        raise TensorError("No output is one row of scores, so there is nothing that --top and --labels could name.")
    for value in rows:
        if labels and len(labels) != value.array.size:
            complain(f"'{file}' has {len(labels)} labels for {value.array.size} scores.")
    found = {}
    for value in rows:
        said = (rules or {}).get(value.name, OutputRules())
        found[value.name] = top_scores(value.array, value.details, count, labels or said.labels, raw=value.raw, rules=said.scores)
    return found


def score_rows(result: RunResult) -> list[Value]:
    """Return the outputs that are a single row of numbers, such as scores of classes."""
    return [value for value in result.outputs if 1 < value.array.size == max(value.array.shape, default=1)]


def rules_of(result: RunResult, reporter: Reporter, *, locale: str = "", labelled: bool = False) -> dict[str, OutputRules]:
    """Return labels, calibration and threshold, by the model's metadata, of each output that is a single row of scores; report
    what is used.
    """
    if result.model is None:
        return {}
    found = {}
    for value in score_rows(result):
        index = int(value.details["index"])
        rules = output_rules(
            result.model, result.subgraph, index, value.name, value.array.size, reporter, locale=locale, labelled=labelled
        )
        if rules != OutputRules():
            found[value.name] = rules
    return found


def objects_of(result: RunResult, reporter: Reporter, *, locale: str = "") -> Objects | None:
    """Return the objects that an object-detection model found, by the model's metadata, and report which metadata are used; None
    for other models, and for raw integers of quantized outputs.
    """
    inputs, outputs = ({value.name: value.details for value in values} for values in (result.inputs, result.outputs))
    picture = picture_input(inputs)
    if result.model is None or result.raw or picture is None:
        return None
    shaped = {value.name: {**value.details, "shape": value.array.shape} for value in result.outputs}
    detector = detector_in(result.model, result.subgraph, inputs, shaped, reporter, locale=locale)
    if detector is None:
        return None
    [given] = [value for value in result.inputs if value.name == picture.name]
    real = {int(outputs[value.name]["index"]): value.displayed for value in result.outputs}
    return objects_in(detector, picture, given.array, given.notices, real)


def as_json(
    result: RunResult, written: str, top: dict[str, list[Score]] | None, objects: Objects | None = None
) -> dict[str, Any]:
    """Return the result of a run, for JSON.

    Args:
        written: the file with the outputs' values; "" to include the values here.
        top: the result of `highest_scores`, None to leave scores out.
        objects: the result of `objects_of`, None to leave objects out.

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
        **({} if objects is None else {"objects": objects.as_dict()}),
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
