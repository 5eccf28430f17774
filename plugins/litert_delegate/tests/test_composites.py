"""Composites under the litert delegate: XNNPACK gets what it computes rightly, as a whole, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

from oplet import Interpreter, load_delegate
from oplet.schema.stablehlo_options import StableHLOCompositeOptions
from oplet_litert_delegate.composites import untaken
from oplet_testing import Graph, Op, Spec, graph_model, invoke

random = np.random.default_rng(3)
NAME = "odml.scaled_dot_product_attention"


def model(
    groups: int = 1, batch: int = 1, attributes: Any = None, mask: bool = True, name: str = NAME, free: bool = False
) -> bytes:
    """An ADD, a composite and a TANH; the decomposition gives zeros."""
    signature = [-1] * 4 if free else None
    q, k, m = (Spec("float32", [batch, *shape], signature=signature) for shape in ((3, 4, 8), (5, groups, 8), (1, 3, 5)))
    tensors = {"q": q, "k": k, "v": k, **({"m": m} if mask else {})}
    names = " ".join(tensors)
    data = np.frombuffer(bytes(flexbuffers.Dumps(attributes or {})), np.uint8)
    options = StableHLOCompositeOptions(name=name, decomposition_subgraph_index=1, composite_attributes=data)
    ops = [
        Op("ADD", "q q", "p"),
        Op("STABLEHLO_COMPOSITE", names.replace("q", "p"), "y", options),
        Op("TANH", "y", "z"),
    ]
    main = Graph({**tensors, "p": q, "y": q, "z": q}, names, "z", ops)
    inner = Graph({**tensors, "o": np.zeros((), np.float32), "y": q}, names, "y", [Op("MUL", "q o", "y")])
    return graph_model(main, inner)


def feeds(groups: int = 1, batch: int = 1, length: int = 5, mask: bool = True) -> list[Any]:
    shapes = [
        (batch, 3, 4, 8),
        (batch, length, groups, 8),
        (batch, length, groups, 8),
        *([(batch, 1, 3, length)] if mask else []),
    ]
    return [random.standard_normal(shape).astype(np.float32) for shape in shapes]


def delegated(content: bytes, **options: Any) -> Interpreter:
    return Interpreter(model_content=content, experimental_delegates=[load_delegate("litert", options)])


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_a_composite_goes_to_litert_with_its_neighbours(groups: int) -> None:
    content, values = model(groups, free=True), feeds(groups)
    interpreter = delegated(content)
    for _ in range(2):
        found = invoke(interpreter, *values, resize=True)[0]
        np.testing.assert_allclose(
            found, invoke(Interpreter(model_content=content), *values, resize=True)[0], rtol=1e-5, atol=1e-5
        )
        assert np.abs(found).max() > 0.01
        assert [report.op for report in interpreter.explain() if report.subgraph == 0] == ["litert"]
        values = feeds(groups, length=9)  # another size, another part


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"attributes": {"scale": 0.1}}, "XNNPACK does not read the attribute 'scale', 0.1, as PyTorch does"),  # in eight bytes
        ({"attributes": {"logit_cap": 30}}, "does not read the attribute 'logit_cap', 30"),  # no floating-point number
        ({"attributes": {"is_causal": True}}, "XNNPACK does not look at the attribute 'is_causal'"),
        ({"batch": 2}, "XNNPACK lets no more than one batch share a key"),
        ({"mask": False}, "without a mask XNNPACK does not look for the one that the decomposition may have"),
    ],
)
def test_what_xnnpack_would_get_wrong_stays_with_oplet(arguments: dict[str, Any], reason: str) -> None:
    content = model(**arguments)
    interpreter = delegated(content)
    values = feeds(batch=arguments.get("batch", 1), mask=arguments.get("mask", True))
    found = invoke(interpreter, *values, resize=True)[0]
    np.testing.assert_allclose(found, invoke(Interpreter(model_content=content), *values, resize=True)[0], rtol=1e-5, atol=1e-5)
    (why,) = [report.why for report in interpreter.explain() if report.op == "STABLEHLO_COMPOSITE"]
    assert reason in why


def test_what_neither_xnnpack_nor_a_kernel_knows_runs_in_litert_by_its_decomposition() -> None:
    content = model(name="odml.other")
    interpreter = delegated(content)
    assert not invoke(interpreter, *feeds(), resize=True)[0].any()
    assert [report.op for report in interpreter.explain() if report.subgraph == 0] == ["litert"]


def test_without_xnnpack_composites_stay_with_oplet() -> None:
    interpreter = delegated(model(), xnnpack="0")
    assert np.abs(invoke(interpreter, *feeds(), resize=True)[0]).max() > 0.01
    (why,) = [report.why for report in interpreter.explain() if report.op == "STABLEHLO_COMPOSITE"]
    assert "without XNNPACK its decomposition would run" in why


@pytest.mark.parametrize(
    ("kernels", "missing"),
    [
        ([([0], [3])], []),
        ([([0], [2])], []),
        ([([0], [1]), ([2], [3])], [1]),
        ([([0], [1])], [1]),
        ([], [1]),
    ],
)
def test_a_composite_that_xnnpack_did_not_take_is_found(kernels: list[tuple[list[int], list[int]]], missing: list[int]) -> None:
    nodes = [{"op_name": f"OP{i}", "inputs": [i], "outputs": [i + 1]} for i in range(3)]
    details = nodes + [{"op_name": "DELEGATE", "inputs": reads, "outputs": writes} for reads, writes in kernels]
    assert untaken(details, [3], [1]) == missing
