"""The contract that every delegate keeps."""

from __future__ import annotations

import numpy as np

from oplet.schema.enums import ActivationFunctionType, Padding
from oplet.schema.options import AddOptions, Conv2DOptions, LocalResponseNormalizationOptions, ReducerOptions
from oplet_testing import DelegateContract, Graph, Op, Spec, graph_model

IMAGE = Spec("float32", [1, 5, 6, 3])
MAP = Spec("float32", [1, 5, 6, 4])
CONV = Conv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1, fused_activation_function=ActivationFunctionType.RELU)
RANDOM = np.random.default_rng(3)


def model() -> bytes:
    """CONV_2D, and an ADD of it with what a LOCAL_RESPONSE_NORMALIZATION makes, which stays with the runtime; a MEAN."""
    tensors = {
        "x": IMAGE,
        "filters": RANDOM.standard_normal((4, 3, 3, 3)).astype(np.float32),
        "bias": RANDOM.standard_normal(4).astype(np.float32),
        "axes": np.array([1, 2], np.int32),
        "c": MAP,
        "n": MAP,
        "s": MAP,
        "y": Spec("float32", [1, 4]),
    }
    ops = [
        Op("CONV_2D", "x filters bias", "c", CONV),
        Op("LOCAL_RESPONSE_NORMALIZATION", "c", "n", LocalResponseNormalizationOptions(radius=1, bias=1, alpha=1, beta=0.5)),
        Op("ADD", "c n", "s", AddOptions()),
        Op("MEAN", "s axes", "y", ReducerOptions(keep_dims=False)),
    ]
    return graph_model(Graph(tensors, "x", "y", ops))


class TestContract(DelegateContract):
    delegate = "xla"
    model = model()
    inputs = (RANDOM.standard_normal((1, 5, 6, 3)).astype(np.float32),)
