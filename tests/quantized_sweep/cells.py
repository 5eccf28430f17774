"""Recurrent cells of integers: dead weights, states and outputs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial

from oplet.schema import options as o
from oplet.schema.enums import ActivationFunctionType

from .conditions import SCALES
from .draft import Draft, Net, Quantized, values

CELLS = ("SVDF",)
_ORDINARY = {"source": 0.05, "features": 0.01, "times": 0.001, "state": 0.01, "output": 0.05}


def cell_nets(label: str) -> Iterator[Callable[[], Net | None]]:
    """What makes the nets of a cell: each of its scales in turn is all of those that the sweep tries."""
    for name, scale in itertools.product(_ORDINARY, SCALES):
        yield partial(_svdf, f"{label} {name} of scale {scale:g}", {**_ORDINARY, name: scale})


def _svdf(name: str, scales: dict[str, float]) -> Net:
    batches, depth, units, memory = 2, 5, 3, 4
    draft = Draft()
    source = draft.fed_tensor("int8", [batches, depth], Quantized(scales["source"], 4))
    features = draft.tensor("int8", [units, depth], Quantized(scales["features"]), data=values("int8", [units, depth], 3))
    times = draft.tensor("int16", [units, memory], Quantized(scales["times"]), data=values("int16", [units, memory], 4))
    state = draft.tensor("int16", [batches, memory * units], Quantized(scales["state"]), is_variable=True)
    output = draft.given(draft.tensor("int8", [batches, units], Quantized(scales["output"], -3)))
    options = o.SVDFOptions(rank=1, fused_activation_function=ActivationFunctionType.RELU)
    draft.node("SVDF", [source, features, times, None, state], [output], options)
    return draft.net(name, "SVDF")
