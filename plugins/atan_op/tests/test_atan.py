"""The op computes atan, takes what it can compute and refuses the rest, and is found where it is installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from oplet import MutableOpResolver, PluginManager
from oplet_atan_op import register_ops
from oplet_testing import OpContract, Spec, one_op_model, run_op


def resolver() -> MutableOpResolver:
    made = MutableOpResolver()
    register_ops(made)
    return made


def run(*feeds: Any, inputs: Sequence[Any], outputs: Sequence[Spec], **options: Any) -> Any:
    """Run a model of one Atan node, served by this package's kernel alone."""
    return run_op(one_op_model("Atan", inputs, outputs), *feeds, op_resolver=resolver(), plugins=[], **options)


def test_the_values_of_the_formats_own_tutorial() -> None:
    x = np.array([-8, 0.5, 2, 2.2, 201], np.float32) + np.float32(1)
    [y] = run(x, inputs=[Spec("float32", [5])], outputs=[Spec("float32", [5])])
    np.testing.assert_allclose(y, [-1.4288993, 0.98279375, 1.2490457, 1.2679114, 1.5658458], rtol=0, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_infinities_zeros_and_nan(dtype: str) -> None:
    x = np.array([np.inf, -np.inf, 0.0, -0.0, np.nan], dtype)
    [y] = run(x, inputs=[Spec(dtype, [5])], outputs=[Spec(dtype, [5])])
    assert y.dtype == dtype
    np.testing.assert_array_equal(y, np.array([np.pi / 2, -np.pi / 2, 0, -0.0, np.nan], dtype))
    assert np.signbit(y).tolist()[:4] == [False, True, False, True]


@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (2, 3, 4)])
def test_the_output_has_the_shape_of_the_input(shape: tuple[int, ...]) -> None:
    x = np.linspace(-3, 3, int(np.prod(shape)), dtype=np.float32).reshape(shape)
    [y] = run(x, inputs=[Spec("float32", [1])], outputs=[Spec("float32", [1])], resize=True)
    np.testing.assert_array_equal(y, np.arctan(x))


def test_a_constant_input_is_computed_too() -> None:
    [y] = run(inputs=[np.ones(2, np.float32)], outputs=[Spec("float32", [2])])
    np.testing.assert_allclose(y, [np.pi / 4] * 2, rtol=1e-6)


FLOAT, INT8 = Spec("float32", [2]), Spec("int8", [2], scale=0.5, zero_point=0)


@pytest.mark.parametrize(
    ("inputs", "outputs", "reason"),
    [
        ([FLOAT, FLOAT], [FLOAT], "2 inputs and takes 1"),
        ([None], [FLOAT], "input 0 is left out"),
        ([FLOAT], [FLOAT, FLOAT], "2 outputs and gives 1"),
        ([INT8], [INT8], "INT8.*FLOAT32 or FLOAT64"),
        ([FLOAT], [Spec("float64", [2])], "FLOAT64.*FLOAT32"),
    ],
)
def test_a_node_that_it_cannot_serve_is_refused(inputs: Any, outputs: Any, reason: str) -> None:
    with pytest.raises(RuntimeError, match=f"Atan.*{reason}|{reason}.*Atan"):
        run(inputs=inputs, outputs=outputs)


def test_pip_installs_it_as_a_plugin() -> None:
    [plugin] = PluginManager(load=["oplet-atan-op"]).providers("Atan")
    assert (plugin.name, plugin.distribution, plugin.ops) == ("atan_op", "oplet-atan-op", (("Atan", 1, 1),))


def test_without_it_the_error_names_it() -> None:
    model = one_op_model("Atan", [FLOAT], [FLOAT])
    with pytest.raises(
        RuntimeError,
        match=r"Encountered unresolved custom op: Atan\. oplet-atan-op .* is installed but not among those that plugins= allows",
    ):
        run_op(model, np.zeros(2, np.float32), plugins=[])


class TestContract(OpContract):
    model = one_op_model("Atan", [Spec("float32", [4])], [Spec("float32", [4])])
    inputs = (np.array([-2, 0, 0.5, 7], np.float32),)
