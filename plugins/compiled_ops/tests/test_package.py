"""Installing the package is all: what it overrides, and what falls back."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from plugins.compiled_ops.tests.compiled import is_compiled

import oplet_compiled_ops
from oplet import (
    Composite,
    Context,
    Interpreter,
    MutableOpResolver,
    Node,
    NodeLimits,
    Registration,
    TensorType,
    charge,
    decline,
)
from oplet.errors import PrepareError
from oplet.ops.serving.resolver import ChainOpResolver
from oplet.schema.enums import BuiltinOperator, Padding
from oplet.schema.options import Conv2DOptions
from oplet_compiled_ops import VERSIONS
from oplet_compiled_ops.elementwise.plain.plain_pairs import sum_kernel
from oplet_compiled_ops.library.kernels import MissingKernelError
from oplet_compiled_ops.overriding import override
from oplet_testing import Spec, one_op_model

OPTIONS = Conv2DOptions(padding=Padding.VALID, stride_h=1, stride_w=1, dilation_h_factor=1, dilation_w_factor=1)


def test_versions_are_those_of_the_numpy_kernels() -> None:
    import oplet_builtin_ops

    resolver = MutableOpResolver()
    oplet_compiled_ops.register_ops(resolver)
    claims = {claim.op: (claim.min_version, claim.max_version) for claim in resolver.entries()}
    tables = (oplet_compiled_ops.CUSTOM, *oplet_compiled_ops.ELSEWHERE.values())
    custom = {name: (first, last) for table in tables for name, (_, first, last) in table.items()}
    builtin = {BuiltinOperator[name]: oplet_builtin_ops.VERSIONS[name] for name in oplet_compiled_ops.OPERATORS.split()}
    composites = {Composite(name): (0, 0) for name in oplet_compiled_ops.COMPOSITES}
    assert claims == builtin | custom | composites
    assert oplet_compiled_ops.COMPOSITES.keys() <= oplet_builtin_ops.COMPOSITES.keys()


def test_every_operator_has_a_module() -> None:
    resolver = MutableOpResolver()
    oplet_compiled_ops.register_ops(resolver)
    assert all(isinstance(entry.load(entry.min_version), Registration) for entry in resolver.entries())
    assert all(name in BuiltinOperator.__members__ for name in VERSIONS)


def test_a_constant_layer_is_served_and_one_with_weights_from_the_model_falls_back() -> None:
    x, y = Spec("float32", (1, 4, 4, 3)), Spec("float32", (1, 4, 4, 2))
    weights = np.ones((2, 1, 1, 3), "float32")
    assert is_compiled(one_op_model("CONV_2D", [x, weights, None], [y], OPTIONS))
    assert not is_compiled(one_op_model("CONV_2D", [x, Spec("float32", weights.shape), None], [y], OPTIONS))
    assert is_compiled(one_op_model("CONV_2D", [Spec("float32", (1, 4, 4, 6)), weights, None], [y], OPTIONS))  # two groups
    large = Spec("float32", (1, 64, 64, 6)), Spec("float32", (1, 64, 64, 2))
    assert not is_compiled(one_op_model("CONV_2D", [large[0], weights, None], [large[1]], OPTIONS))


@pytest.mark.parametrize("how", ["declines", "runs out of memory", "is not in the library", "is refused by numpy", "serves"])
def test_a_node_that_is_not_served_goes_to_the_next_provider_as_if_nothing_had_been_asked_for(how: str) -> None:
    def made_bind() -> Any:
        return lambda: None

    seen: list[tuple[object, int, object]] = []
    made: list[str] = []

    def prepare(context: Context, node: Node) -> None:
        if how == "is refused by numpy":
            raise PrepareError("numpy says no")
        node.prepared = "numpy's"
        context.add_temporary(node, (3,), TensorType.FLOAT32)
        context.resize_tensor(node.outputs[0], (3,))
        node.cached("weights", [node.inputs[1]], lambda: (made.append("weights"), np.ones(3))[1])

    def plan(context: Context, node: Node) -> Any:
        assert node.prepared == "numpy's"
        assert not node.temporaries
        if how == "declines":
            decline("not this one.")
        if how == "runs out of memory":
            charge(1 << 40)
        if how == "is not in the library":
            raise MissingKernelError("no such machine")
        return made_bind

    def next_prepare(context: Context, node: Node) -> None:
        seen.append((node.prepared, len(node.temporaries), node.kernel_cache))
        context.resize_tensor(node.outputs[0], (3,))

    first, second = MutableOpResolver(), MutableOpResolver()
    numpys = Registration(prepare=prepare, invoke=lambda context, node: None)
    first.add_custom("Own", override(numpys, plan, NodeLimits(inputs=[[TensorType.FLOAT32]])))
    second.add_custom("Own", Registration(prepare=next_prepare, invoke=lambda context, node: None))
    model = one_op_model("Own", [Spec("float32", (3,)), np.ones(3, np.float32)], [Spec("float32", (3,))])
    interpreter = Interpreter(model_content=model, op_resolver=ChainOpResolver([first, second]))
    interpreter.allocate_tensors()
    node = interpreter._subgraphs[0].nodes[0]
    if how == "serves":
        assert seen == []
        assert node.prepared is made_bind
        return
    assert seen == [(None, 0, (None, None))]
    assert node.providers is not None
    reasons = {
        "declines": "not this one",
        "runs out of memory": "more memory than is allowed",
        "is not in the library": "no such machine",
        "is refused by numpy": "numpy says no",
    }
    assert reasons[how] in interpreter.explain()[0].why


def test_what_the_package_declines_is_told_with_its_name_and_refused_in_the_words_of_the_next_one() -> None:
    halves = Spec("float16", (2, 3))
    interpreter = Interpreter(model_content=one_op_model("SQUARE", [halves], [halves]))
    interpreter.allocate_tensors()
    [report] = interpreter.explain()
    assert report.distribution == "oplet-builtin-ops"
    assert re.search(r"oplet-compiled-ops .* declined it: input 0 is of type FLOAT16, and it serves FLOAT32 there", report.why)
    wrong = Interpreter(model_content=one_op_model("SOFTMAX", [Spec("float32", (2, 3))] * 2, [Spec("float32", (2, 3))]))
    alone = Interpreter(
        model_content=one_op_model("SOFTMAX", [Spec("float32", (2, 3))] * 2, [Spec("float32", (2, 3))]),
        plugins=["no:oplet-compiled-ops"],
    )
    said = []
    for each in (wrong, alone):
        with pytest.raises(PrepareError, match="in the kernel of oplet-builtin-ops") as caught:
            each.allocate_tensors()
        said.append(str(caught.value))
    assert said[0] == said[1]


def test_a_kernel_refuses_other_types_in_place_of_compiling_for_them() -> None:
    kernel = sum_kernel("f4").compiled()
    values, results = np.arange(3, dtype="float32"), np.zeros(3, "float32")
    kernel(values, values, results)
    assert results.tolist() == [0, 2, 4]
    with pytest.raises(TypeError):
        kernel(*[values.astype("float64")] * 3)
