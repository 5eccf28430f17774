"""Fused activations of float kernels."""

from __future__ import annotations

import numpy as np

from oplet.schema.enums import ActivationFunctionType as Act
from oplet_builtin_ops.arithmetic.fused_activations import apply_activation


def test_float_activations_work_in_place() -> None:
    x = np.array([-2.0, 0.5, 7.0], np.float32)
    for activation, expected in [(Act.NONE, x), (Act.RELU, [0, 0.5, 7]), (Act.RELU6, [0, 0.5, 6]), (Act.TANH, np.tanh(x))]:
        y = x.copy()
        apply_activation(y, activation)
        np.testing.assert_array_equal(y, expected)
