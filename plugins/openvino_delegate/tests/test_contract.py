"""The contract that every delegate keeps."""

from __future__ import annotations

import numpy as np

from oplet.schema.enums import ActivationFunctionType, Padding
from oplet.schema.options import AddOptions, Conv2DOptions, ReducerOptions
from oplet_testing import DelegateContract, Graph, Op, Spec, graph_model

IMAGE = Spec("float32", [1, 5, 6, 3])
MAP = Spec("float32", [1, 5, 6, 4])
CONV = Conv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1, fused_activation_function=ActivationFunctionType.RELU)
RANDOM = np.random.default_rng(3)


def model() -> bytes:
    """CONV_2D, and an ADD of it with its own absolute values; between them an ATAN2 that stays; a MEAN."""
    tensors = {
        "x": IMAGE,
        "filters": RANDOM.standard_normal((4, 3, 3, 3)).astype(np.float32),
        "bias": RANDOM.standard_normal(4).astype(np.float32),
        "axes": np.array([1, 2], np.int32),
        "c": MAP,
        "a": MAP,
        "t": MAP,
        "s": MAP,
        "y": Spec("float32", [1, 4]),
    }
    ops = [
        Op("CONV_2D", "x filters bias", "c", CONV),
        Op("ABS", "c", "a"),
        Op("ATAN2", "a c", "t"),
        Op("ADD", "a t", "s", AddOptions()),
        Op("MEAN", "s axes", "y", ReducerOptions(keep_dims=False)),
    ]
    return graph_model(Graph(tensors, "x", "y", ops))


class TestContract(DelegateContract):
    delegate = "openvino"
    model = model()
    inputs = (RANDOM.standard_normal((1, 5, 6, 3)).astype(np.float32),)
