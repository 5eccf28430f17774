"""The example of LiteRT's public guide to op versions, step by step: DEPTHWISE_CONV_2D learns to dilate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oplet import DelegateKernel, Interpreter, Model, ModelBuilder, MutableOpResolver, PluginManager, SimpleDelegate
from oplet.errors import OpVersionError
from oplet.schema.enums import BuiltinOperator, Padding
from oplet.schema.options import DepthwiseConv2DOptions
from oplet_testing import invoke, litert_interpreter


def model(dilation: tuple[int, int] = (1, 1)) -> bytes:
    builder = ModelBuilder()
    main = builder.add_subgraph()
    x = main.add_tensor("x", np.float32, [1, 6, 6, 1])
    w = main.add_tensor("w", np.float32, [1, 3, 3, 1], data=np.arange(9, dtype=np.float32))
    b = main.add_tensor("b", np.float32, [1], data=np.zeros(1, np.float32))
    height, width = (6 - 2 * d for d in dilation)
    y = main.add_tensor("y", np.float32, [1, height, width, 1])
    options = DepthwiseConv2DOptions(
        padding=Padding.VALID,
        stride_h=1,
        stride_w=1,
        depth_multiplier=1,
        dilation_h_factor=dilation[0],
        dilation_w_factor=dilation[1],
    )
    main.add_operator("DEPTHWISE_CONV_2D", [x, w, b], [y], options)
    main.set_inputs(x)
    main.set_outputs(y)
    return builder.to_bytes()


def version(data: bytes) -> int:
    [code] = Model.from_bytes(data).root.operator_codes or []
    return code.version


def run(interpreter: Any) -> np.ndarray:
    return invoke(interpreter, np.arange(36, dtype=np.float32).reshape(1, 6, 6, 1))[0]


def only(first: int, last: int) -> MutableOpResolver:
    """A resolver that serves the operator in these versions and no other."""
    kernel = PluginManager().resolver().find_op(BuiltinOperator.DEPTHWISE_CONV_2D, 1)
    resolver = MutableOpResolver()
    resolver.add_builtin("DEPTHWISE_CONV_2D", kernel, first, last)
    return resolver


@pytest.mark.parametrize(("dilation", "expected"), [((1, 1), 1), ((2, 1), 2), ((1, 2), 2), ((2, 2), 2)])
def test_the_writer_gives_version_2_only_to_what_dilates(dilation: tuple[int, int], expected: int) -> None:
    assert version(model(dilation)) == expected


@pytest.mark.parametrize("dilation", [(1, 1), (2, 2)])
def test_a_kernel_registered_for_1_to_2_runs_both_and_gives_litert_s_numbers(dilation: tuple[int, int]) -> None:
    data = model(dilation)
    ours = run(Interpreter(model_content=data, op_resolver=only(1, 2), plugins=[]))
    np.testing.assert_allclose(ours, run(litert_interpreter()(model_content=data)), rtol=1e-6)


def test_a_resolver_that_has_version_1_runs_what_uses_nothing_new() -> None:
    assert run(Interpreter(model_content=model(), op_resolver=only(1, 1), plugins=[])).shape == (1, 4, 4, 1)


def test_a_resolver_that_has_only_version_1_reports_version_2_in_the_known_words() -> None:
    with pytest.raises(
        OpVersionError,
        match=r"Didn't find op for builtin opcode 'DEPTHWISE_CONV_2D' version '2'. An older version of this builtin might be "
        r"supported. Are you using an old TFLite binary with a newer model\?",
    ):
        Interpreter(model_content=model((2, 2)), op_resolver=only(1, 1), plugins=[])


def test_an_old_file_without_the_fields_reads_dilation_1() -> None:
    """Defaults are not written, so the bytes of the undilated model are those of a file from before the fields existed."""
    [operator] = (Model.from_bytes(model()).root.subgraphs or [])[0].operators or []
    assert isinstance(operator.builtin_options, DepthwiseConv2DOptions)
    assert not {"dilation_w_factor", "dilation_h_factor"} & operator.builtin_options.__dict__.keys()
    assert (operator.builtin_options.dilation_w_factor, operator.builtin_options.dilation_h_factor) == (1, 1)


class KnowsVersion1(SimpleDelegate):
    """Claims the operator up to version 1, as the guide tells authors to check even if there is only one version yet."""

    name = "KnowsVersion1"

    def is_node_supported(self, context: Any, node: Any) -> bool | str:
        return node.version <= 1 or f"{node.op_name} is of version {node.version}, it knows up to 1"

    def create_kernel(self, params: Any) -> DelegateKernel:
        return Calls(params)


class Calls(DelegateKernel):
    def __init__(self, params: Any) -> None:
        self.params = params

    def prepare(self, context: Any, node: Any) -> None:
        context.resize_tensor(node.outputs[0], (1, 4, 4, 1))

    def bind(self, context: Any, node: Any) -> Any:
        return lambda: node.outputs[0].data.fill(7)


@pytest.mark.parametrize(("dilation", "claimed"), [((1, 1), True), ((2, 2), False)])
def test_a_delegate_that_knows_version_1_leaves_a_version_2_node_alone(dilation: tuple[int, int], claimed: bool) -> None:
    with_delegate = Interpreter(model_content=model(dilation), experimental_delegates=[KnowsVersion1()])
    result = run(with_delegate)
    if claimed:
        assert (result == 7).all()
    else:
        np.testing.assert_array_equal(result, run(Interpreter(model_content=model(dilation))))
