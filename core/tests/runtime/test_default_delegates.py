"""`experimental_op_resolver_type` reaches kernels, and what they remark of their nodes reaches `explain()`."""

from __future__ import annotations

import numpy as np
import pytest
from core.tests.chains import F32, like_input

from oplet import Context, Interpreter, ModelBuilder, MutableOpResolver, Node, OpResolverType, Registration
from oplet_testing import WrappingDelegate, invoke


def invoke_kind(context: Context, node: Node) -> None:
    node.outputs[0].data[...] = context.default_delegates


def remark(node: Node, default_delegates: bool) -> str:
    return f"{node.op_name} has {'default' if default_delegates else 'own'} numbers" if node.index else ""


def interpreter_of(kind: OpResolverType, **arguments: object) -> Interpreter:
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x, y, z = (graph.add_tensor(name, "float32", [2]) for name in "xyz")
    graph.set_inputs(x)
    graph.set_outputs(y, z)
    graph.add_operator("Kind", [x], [y])
    graph.add_operator("Kind", [x], [z])
    resolver = MutableOpResolver()
    resolver.add_custom("Kind", Registration(prepare=like_input, invoke=invoke_kind, remark=remark))
    content = builder.to_bytes()
    return Interpreter(model_content=content, op_resolver=resolver, plugins=[], experimental_op_resolver_type=kind, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", list(OpResolverType))
@pytest.mark.parametrize("wrapped", [False, True])
def test_the_resolver_type_says_whose_numbers_kernels_give(kind: OpResolverType, wrapped: bool) -> None:
    default = kind in (OpResolverType.AUTO, OpResolverType.BUILTIN)
    interpreter = interpreter_of(kind, experimental_delegates=[WrappingDelegate()] if wrapped else None)
    assert [value.tolist() for value in invoke(interpreter, np.zeros(2, F32))] == [[default] * 2] * 2


def test_explain_tells_what_a_kernel_remarks_of_its_node() -> None:
    first, second = interpreter_of(OpResolverType.AUTO).explain()
    assert "numbers" not in first.why
    assert second.why == f"{first.why}; Kind has default numbers"
    assert interpreter_of(OpResolverType.BUILTIN_REF).explain()[1].why.endswith("; Kind has own numbers")
