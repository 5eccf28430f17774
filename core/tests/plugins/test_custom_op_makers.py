"""A custom op of a known maker is told with what made the file, and what to do."""

from __future__ import annotations

from typing import Any

import pytest

from oplet import Interpreter, ModelBuilder
from oplet.errors import UnresolvedOpError
from oplet.plugins.custom_op_makers import maker_of, makers
from oplet.plugins.known_packages import known_distribution

NAMES = [pattern.replace("*", "Anything") for maker in makers() for pattern in maker.patterns]


def a_model(op: str) -> bytes:
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x, y = graph.add_tensor("x", "float32", [1]), graph.add_tensor("y", "float32", [1])
    graph.add_operator(op, [x], [y])
    graph.set_inputs(x)
    graph.set_outputs(y)
    return builder.to_bytes()


@pytest.mark.parametrize("op", NAMES)
def test_the_maker_and_the_remedy_are_told_where_no_package_has_the_op(site: Any, op: str) -> None:
    if package := known_distribution(op):
        pytest.skip(f"{package} serves it")
    maker = maker_of(op)
    assert maker is not None
    text = site.manager().advice(op)
    assert text == f"{op} is what {maker.made}: {maker.remedy}."
    with pytest.raises(UnresolvedOpError) as caught:
        Interpreter(model_content=a_model(op), plugins=site.manager()).allocate_tensors()
    assert text in str(caught.value)


def test_each_name_has_one_maker_and_each_row_says_both() -> None:
    patterns = [pattern for maker in makers() for pattern in maker.patterns]
    assert len(patterns) == len(set(patterns)) > 20
    for maker in makers():
        assert maker.made, maker
        assert maker.remedy, maker
        assert not maker.remedy.endswith("."), maker
        assert "pip install" not in maker.remedy, "a message advises to install nothing that is not of this project"


@pytest.mark.parametrize("op", ["Frobnicate", "edgetpu", "LayerNorm", "lceQuantize", "Normalize2", "ONNX", ""])
def test_a_name_that_merely_resembles_one_has_no_maker(op: str) -> None:
    assert maker_of(op) is None
