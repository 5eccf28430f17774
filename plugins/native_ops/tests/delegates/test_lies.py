"""A delegate library that lies is refused in one sentence, as far as that can be seen, and the graph is as before."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from plugins.native_ops.tests.delegates.conftest import answers, convolutions, graph_of, run

from oplet import Interpreter, load_delegate
from oplet.errors import DelegateError, DelegateLoadError


@pytest.fixture(scope="module")
def liar(build_once: Callable[..., str]) -> str:
    return build_once("delegates/liar.c", library="libliar.so")


@pytest.mark.parametrize(
    ("lie", "text"),
    [
        ("null", "libliar.so makes no delegate with the options {'lie': 'null'}: it does not say why."),
        ("reason", "there is no such device; try another"),
        ("nowhere", "libliar.so makes a delegate at 0x10, where the program has no memory."),
        ("no-prepare", "has no Prepare, so it cannot claim anything"),
        ("data-prepare", "its Prepare is no function"),
        ("opaque-nowhere", "has its functions at 0x10, where the program has no memory"),
        ("opaque-no-prepare", "has no Prepare, so it cannot claim anything"),
    ],
)
def test_what_is_no_delegate_is_not_made(liar: str, lie: str, text: str) -> None:
    with pytest.raises(DelegateLoadError) as caught:
        load_delegate(liar, {"lie": lie})
    assert str(caught.value).startswith(f"Failed to load delegate from {liar}: ")
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("lie", "text"),
    [
        ("status", "it answers with kTfLiteDelegateError and without a reason."),
        ("far", "It claims node 1000, which there is not: the subgraph has 3 nodes."),
        ("negative", "It claims node -5, which there is not: the subgraph has 3 nodes."),
        ("size", "It claims -3 nodes, which cannot be."),
        ("null-nodes", "It claims nodes by a null pointer."),
        ("null-invoke", "It replaces nodes by a kernel without invoke, which cannot run."),
        ("data-init", "It replaces nodes by a registration whose init is no function."),
        ("other", "It claims nodes for another delegate than itself."),
        ("preview", "It asks for the partitions of node 1000, which there is not: the subgraph has 3 nodes."),
        ("acquire", "subgraph 9; the model has 1 subgraphs."),
        ("inputs", "It makes node 0 read tensor 12345, which there is not."),
        ("asks-far", "it answers with kTfLiteError and without a reason."),
        ("opaque-null", "It replaces nodes by a null operator, or by one that TfLiteOperatorCreate did not make."),
        ("opaque-nonsense", "It replaces nodes by a null operator, or by one that TfLiteOperatorCreate did not make."),
    ],
)
def test_what_it_asks_for_and_cannot_have_leaves_the_graph_as_before(liar: str, lie: str, text: str) -> None:
    content = convolutions(1)
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    before = graph_of(interpreter)
    with pytest.raises(DelegateError) as caught:
        interpreter.modify_graph_with_delegate(load_delegate(liar, {"lie": lie}))
    assert "libliar.so failed on subgraph 0 'main'" in str(caught.value)
    assert text in str(caught.value)
    assert graph_of(interpreter) == before
    np.testing.assert_array_equal(run(interpreter)[0], answers(content)[0])
