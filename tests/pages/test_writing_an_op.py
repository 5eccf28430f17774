"""The composite of docs/writing-an-op.md, run as it is written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers
from tests.places import ROOT

from oplet import Interpreter, MutableOpResolver
from oplet.schema.stablehlo_options import StableHLOCompositeOptions
from oplet_testing import Graph, Op, OpContract, Spec, call_op, graph_model

PAGE = ROOT / "docs" / "writing-an-op.md"


def section(title: str) -> dict[str, Any]:
    """What the code of a section binds."""
    text = PAGE.read_text().split(f"\n## {title}\n")[1].split("\n## ")[0]
    found: dict[str, Any] = {"__name__": "page"}
    for block in text.split("```python\n")[1:]:
        exec(compile(block.split("```")[0], str(PAGE), "exec"), found)
    return found


CODE = section("Composites")


def resolver() -> MutableOpResolver:
    made = MutableOpResolver()
    CODE["register_ops"](made)
    return made


def run(attributes: dict[str, Any]) -> tuple[list[float], str]:
    x, w = Spec("float32", [1, 2]), Spec("float32", [2])
    data = np.frombuffer(bytes(flexbuffers.Dumps(attributes)), np.uint8)
    options = StableHLOCompositeOptions(name="odml.rms_norm", decomposition_subgraph_index=1, composite_attributes=data)
    main = Graph({"x": x, "w": w, "y": x}, "x w", "y", [Op("STABLEHLO_COMPOSITE", "x w", "y", options)])
    model = graph_model(main, Graph({"x": x, "w": w, "y": x}, "x w", "y", [Op("ADD", "x w", "y")]))
    interpreter = Interpreter(model_content=model, op_resolver=resolver())
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.array([[3, 4]], np.float32))
    interpreter.set_tensor(1, np.array([1, 10], np.float32))
    interpreter.invoke()
    return interpreter.get_tensor(2)[0].tolist(), interpreter.explain()[0].why


def test_the_page_s_composite_computes_what_it_says() -> None:
    (values, why) = run({"epsilon": 12.5})
    np.testing.assert_allclose(values, [0.6, 8], rtol=1e-6)
    assert why == "odml.rms_norm version 0: registered"


def test_the_page_s_composite_declines_what_it_does_not_know() -> None:
    (values, why) = run({"sub_type": 1})
    assert values == [4, 14]
    assert "application declined it: it knows epsilon and FLOAT32 only, not ['sub_type']" in why


class TestContract(CODE["TestContract"], OpContract):  # type: ignore[misc]
    """The contract of the page's kernel."""

    op_resolver = resolver()


def test_the_option_of_the_page_is_read_and_an_axis_that_is_none_is_refused() -> None:
    found = section("Options")
    np.testing.assert_array_equal(found["running"], [[1, 3, 3], [0, 4, 4]])
    for axis, row in ((None, [1, 3, 3]), (-2, [1, 3, 2])):
        options = b"" if axis is None else bytes(flexbuffers.Dumps({"axis": axis}))
        [y] = call_op("CumMax", [found["rows"]], [Spec("float32", [2, 3])], custom_options=options, op_resolver=found["resolver"])
        assert y[0].tolist() == row
    with pytest.raises(RuntimeError, match="the option 'axis' is 2; it must be an integer from -2 to 1"):
        call_op(
            "CumMax",
            [found["rows"]],
            [Spec("float32", [2, 3])],
            custom_options=bytes(flexbuffers.Dumps({"axis": 2})),
            op_resolver=found["resolver"],
        )
