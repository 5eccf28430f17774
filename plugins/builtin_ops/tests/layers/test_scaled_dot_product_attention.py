"""odml.scaled_dot_product_attention against the formula in double precision, and against XNNPACK."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
import pytest
from flatbuffers import flexbuffers
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.budgets import examples

from oplet import Interpreter, MutableOpResolver, Registration
from oplet.errors import CustomOptionsError, PrepareError
from oplet.schema.options import BatchMatMulOptions, SoftmaxOptions
from oplet.schema.stablehlo_options import StableHLOCompositeOptions
from oplet_testing import OpContract, litert_interpreter, run_op
from oplet_testing.graphs import Graph, Op, graph_model
from oplet_testing.one_op import Spec

Array = NDArray[Any]
NAME = "odml.scaled_dot_product_attention"
NO_ATTRIBUTES = np.frombuffer(bytes(flexbuffers.Dumps({})), np.uint8)
random = np.random.default_rng(11)


def model(*operands: Array, output: tuple[int, ...] | None = None, attributes: Any = None, free: bool = False) -> bytes:
    """One composite; its decomposition, a copy of the query times 0, gives itself away."""
    names = ["q", "k", "v", "m", "x"][: len(operands)]
    dtype = operands[0].dtype
    b, t, n, _ = operands[0].shape if operands[0].ndim == 4 else (1, 1, 1, 1)
    shape = output or (b, t, n, operands[2].shape[-1])
    signature = [-1] * operands[0].ndim if free else None
    tensors: dict[str, Any] = {
        name: Spec(each.dtype, list(each.shape), signature=signature) for name, each in zip(names, operands)
    }
    given = " ".join(names)
    data = attributes if isinstance(attributes, bytes) else bytes(flexbuffers.Dumps(attributes or {}))
    options = StableHLOCompositeOptions(
        name=NAME, decomposition_subgraph_index=1, composite_attributes=np.frombuffer(data, np.uint8)
    )
    main = Graph({**tensors, "y": Spec(dtype, list(shape))}, given, "y", [Op("STABLEHLO_COMPOSITE", given, "y", options)])
    zero = {**tensors, "z": np.zeros((), dtype), "y": tensors["q"]}
    return graph_model(main, Graph(zero, given, "y", [Op("MUL", "q z", "y")]))


def formula(
    q: Array, k: Array, v: Array, mask: Array | None = None, scale: float | None = None, logit_cap: float | None = None
) -> Array:
    q, k, v = (each.astype(np.float64) for each in (q, k, v))
    k, v = (each.repeat(q.shape[2] // each.shape[2], 2) for each in (k, v))
    scores = np.einsum("btnh,bsnh->bnts", q, k) * (q.shape[3] ** -0.5 if scale is None else scale)
    if logit_cap:
        scores = logit_cap * np.tanh(scores / logit_cap)
    if mask is not None:
        scores = scores + mask
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("bnts,bsnh->btnh", scores / scores.sum(-1, keepdims=True), v)


def normal(*shape: int, dtype: Any = np.float32) -> Array:
    return random.standard_normal(shape).astype(dtype)


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Array], dict[str, float]]:
    batch, groups, shared, time = (draw(st.integers(1, 3)) for _ in range(4))
    length, size, depth = (draw(st.integers(1, 9)) for _ in range(3))
    values = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shapes = [(batch, time, groups * shared, size), (batch, length, groups, size), (batch, length, groups, depth)]
    if draw(st.booleans()):
        full = batch, groups * shared, time, length
        shapes.append(tuple(draw(st.sampled_from([1, each])) for each in full)[draw(st.integers(0, 3)) :])
    operands = [values.standard_normal(shape).astype(np.float32) for shape in shapes]
    for mask in operands[3:]:
        rest = mask[..., 1:]  # something to attend to is left
        rest[values.random(rest.shape) < 0.4] = -1e9
    attributes = {}
    if draw(st.booleans()):
        attributes["scale"] = draw(st.sampled_from([0.25, 1.0, 2.0]))
    if draw(st.booleans()):
        attributes["logit_cap"] = draw(st.sampled_from([0.5, 2.0, 50.0]))
    return operands, attributes


@settings(max_examples=examples(150), deadline=None)
@given(cases())
def test_any_heads_masks_and_attributes_give_the_formula(case: tuple[list[Array], dict[str, float]]) -> None:
    operands, attributes = case
    output = run_op(model(*operands, attributes=attributes), *operands)[0]
    np.testing.assert_allclose(output, formula(*operands, **attributes), rtol=1e-5, atol=1e-5)  # type: ignore[arg-type]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("batch", "time", "heads", "groups", "length"),
    [(1, 130, 4, 1, 700), (1, 70, 6, 2, 1024), (2, 40, 4, 4, 600), (1, 1, 8, 2, 9000), (3, 1, 8, 8, 5000), (1, 9, 2, 1, 30000)],
)
def test_work_that_is_done_in_parts_gives_the_formula(
    batch: int, time: int, heads: int, groups: int, length: int, threads: int
) -> None:
    operands = [normal(batch, time, heads, 8), normal(batch, length, groups, 8), normal(batch, length, groups, 8)]
    operands.append(normal(batch, 1, time, length))
    output = run_op(model(*operands), *operands, num_threads=threads)[0]
    np.testing.assert_allclose(output, formula(*operands), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("threads", [1, 2])
def test_nothing_is_kept_from_the_run_or_the_shapes_before(threads: int) -> None:
    shapes = [(1, 3, 4, 8, 5), (2, 60, 4, 8, 500), (1, 1, 2, 4, 1), (1, 3, 4, 8, 5)]
    interpreter = Interpreter(model_content=model(*_operands(*shapes[0]), free=True), num_threads=threads)
    for shape in shapes:
        for _ in range(2):
            operands = _operands(*shape)
            for detail, value in zip(interpreter.get_input_details(), operands):
                interpreter.resize_tensor_input(detail["index"], value.shape)
            interpreter.allocate_tensors()
            for detail, value in zip(interpreter.get_input_details(), operands):
                interpreter.set_tensor(detail["index"], value)
            interpreter.invoke()
            output = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
            np.testing.assert_allclose(output, formula(*operands), rtol=1e-5, atol=1e-5)


def _operands(batch: int, time: int, heads: int, size: int, length: int) -> list[Array]:
    return [normal(batch, time, heads, size), *(normal(batch, length, 2, size) for _ in "kv"), normal(batch, 1, time, length)]


@pytest.mark.parametrize("masked", [-np.inf, float(np.finfo(np.float32).min), -1e30, -1e9, -100.0, -90.0, -0.0])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_masks_of_every_size_do_what_they_do_in_xnnpack(groups: int, masked: float) -> None:
    operands = [normal(1, 3, 4, 8), normal(1, 6, groups, 8), normal(1, 6, groups, 8), np.zeros((1, 1, 3, 6), np.float32)]
    operands[3][0, 0, 0, 2:] = masked
    operands[3][0, 0, 1, :] = masked  # nothing to attend to
    content = model(*operands)
    ours, theirs = (run_op(content, *operands, interpreter=make)[0] for make in (Interpreter, litert_interpreter()))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
    assert np.isnan(ours[0, 1]).all() == math.isinf(masked)


@settings(max_examples=examples(40), deadline=None)
@given(cases())
def test_what_xnnpack_takes_it_computes_alike(case: tuple[list[Array], dict[str, float]]) -> None:
    operands, attributes = case
    q, k, v, *masks = operands
    v = v.repeat(9, -1)[..., : q.shape[-1]]
    if k.shape[2] == 1:
        q, k, v = q[:1], k[:1], v[:1]
        masks = [mask[:1] if mask.ndim == 4 else mask for mask in masks]
    masks = [np.broadcast_to(mask, (*mask.shape[:-1], k.shape[1])).copy() for mask in masks]
    operands = [q, k, np.ascontiguousarray(v), *masks]
    content = model(*operands, attributes=attributes)
    ours, theirs = (run_op(content, *operands, interpreter=make)[0] for make in (Interpreter, litert_interpreter()))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_half_precision_is_computed_in_single_precision(groups: int) -> None:
    operands = [normal(2, 3, 4, 8), normal(2, 6, groups, 8), normal(2, 6, groups, 8), normal(1, 1, 3, 6)]
    operands = [each.astype(np.float16) for each in operands]
    output = run_op(model(*operands), *operands)[0]
    assert output.dtype == np.float16
    np.testing.assert_allclose(output, formula(*operands).astype(np.float16), rtol=1e-3, atol=1e-5)


def test_constant_operands_are_folded() -> None:
    q, k, v = normal(1, 2, 2, 4), normal(1, 3, 1, 4), normal(1, 3, 1, 4)
    options = StableHLOCompositeOptions(name=NAME, decomposition_subgraph_index=-1)
    spec = Spec("float32", [1, 2, 2, 4])
    main = Graph(
        {"a": spec, "q": q, "k": k, "v": v, "y": spec, "z": spec}, "a", "z",
        [Op("STABLEHLO_COMPOSITE", "q k v", "y", options), Op("ADD", "a y", "z")],
    )  # fmt: skip
    np.testing.assert_allclose(run_op(graph_model(main), np.zeros_like(q))[0], formula(q, k, v), rtol=1e-5, atol=1e-5)


def usual() -> list[Array]:
    return [normal(1, 3, 4, 8), normal(1, 6, 2, 8), normal(1, 6, 2, 8), normal(1, 1, 3, 6)]


def changed(position: int, value: Array) -> list[Array]:
    operands = usual()
    operands[position] = value
    return operands


@pytest.mark.parametrize(
    ("operands", "attributes", "reason"),
    [
        (usual(), {"is_causal": True}, "the attribute is_causal is not known"),
        (usual(), {"a": 1, "b": 2}, "the attributes a, b are not known"),
        (usual(), {"scale": "big"}, "the attribute scale is 'big', which is no number to compute with"),
        (usual(), {"scale": True}, "the attribute scale is True"),
        (usual(), {"scale": math.inf}, "the attribute scale is inf"),
        (usual(), {"logit_cap": 0.0}, "logit_cap is 0.0; it must be above 0"),
        (usual()[:2], {}, "this node reads 2 and writes 1"),
        ([*usual(), normal(1)], {}, "this node reads 5 and writes 1"),
        (changed(3, np.ones((1, 1, 3, 6), np.bool_)), {}, "is of type BOOL"),
        (changed(3, normal(1, 1, 3, 5)), {}, "the mask, [1, 1, 3, 5], does not broadcast to the scores, [1, 4, 3, 6]"),
        (changed(3, normal(2, 1, 3, 6)), {}, "does not broadcast"),
        (changed(3, normal(1, 1, 1, 3, 6)), {}, "does not broadcast"),
        (changed(1, normal(1, 6, 2, 7)), {}, "do not fit each other"),
        (changed(1, normal(1, 5, 2, 8)), {}, "do not fit each other"),
        (changed(0, normal(2, 3, 4, 8)), {}, "do not fit each other"),
        (changed(0, normal(1, 3, 3, 8)), {}, "3 heads cannot share 2 keys evenly"),
        (changed(0, normal(3, 4, 8)), {}, "has 3 dimensions"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_left_to_the_decomposition(operands: list[Array], attributes: Any, reason: str) -> None:
    content = model(*operands, output=operands[0].shape, attributes=attributes)
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    why = interpreter.explain()[0].why
    assert "its decomposition runs" in why
    assert reason in why
    for detail, value in zip(interpreter.get_input_details(), operands):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    assert not interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).any()


def test_attributes_that_are_garbage_are_refused() -> None:
    with pytest.raises(CustomOptionsError, match="composite attributes are not a FlexBuffer"):
        run_op(model(*usual(), attributes=b"\x07" * 40))


def test_whole_numbers_and_nothing_at_all_are_attributes_too() -> None:
    operands = usual()
    output = run_op(model(*operands, attributes={"scale": None, "logit_cap": 3}), *operands)[0]
    np.testing.assert_allclose(output, formula(*operands, logit_cap=3), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(0, 3, 4, 8), (1, 0, 4, 8)])
def test_attention_of_nothing_is_nothing(shape: tuple[int, ...]) -> None:
    operands = [normal(*shape), normal(shape[0], 6, 2, 8), normal(shape[0], 6, 2, 8)]
    assert run_op(model(*operands), *operands)[0].shape == shape


def with_decomposition(*ops: Op, **tensors: Any) -> tuple[bytes, list[Array]]:
    """A composite without a mask; its decomposition makes scores "s" and probabilities of "t", and gives zeros."""
    operands = [normal(1, 3, 4, 8), normal(1, 6, 4, 8), normal(1, 6, 4, 8)]
    q, k, s = Spec("float32", [1, 3, 4, 8]), Spec("float32", [1, 6, 4, 8]), Spec("float32", [1, 4, 3, 6])
    options = StableHLOCompositeOptions(name=NAME, decomposition_subgraph_index=1, composite_attributes=NO_ATTRIBUTES)
    main = Graph({"q": q, "k": k, "v": k, "y": q}, "q k v", "y", [Op("STABLEHLO_COMPOSITE", "q k v", "y", options)])
    qt, kt = Spec("float32", [1, 4, 3, 8]), Spec("float32", [1, 4, 6, 8])
    inner = {
        "q": q, "k": k, "v": k, "s": s, "t": s, "u": s, "p": s, "y": q, "z": np.zeros((), np.float32),
        "qt": qt, "kt": kt, "to": np.array([0, 2, 1, 3], np.int32), **tensors,
    }  # fmt: skip
    before = [
        Op("TRANSPOSE", "q to", "qt"),
        Op("TRANSPOSE", "k to", "kt"),
        Op("BATCH_MATMUL", "qt kt", "s", BatchMatMulOptions(adj_y=True)),
    ]
    after = [Op("SOFTMAX", "t", "p", SoftmaxOptions(beta=1.0)), Op("MUL", "q z", "y")]
    return graph_model(main, Graph(inner, "q k v", "y", [*before, *ops, *after])), operands


MASK = np.where(np.tri(3, 6) > 0, 0, -np.inf).astype(np.float32)
ADD = Op("ADD", "s mask", "t")


@pytest.mark.parametrize(
    ("ops", "tensors"),
    [
        ((ADD,), {"mask": MASK}),
        ((ADD,), {"mask": MASK[None]}),
        (
            (Op("SELECT_V2", "seen z low", "m"), Op("RESHAPE", "m shape", "mask"), ADD),
            {"seen": MASK == 0, "low": np.array(-np.inf, np.float32), "m": Spec("float32", [3, 6]),
             "shape": np.array([1, 1, 3, 6], np.int32), "mask": Spec("float32", [1, 1, 3, 6])},
        ),
    ],
)  # fmt: skip
def test_a_mask_that_only_the_decomposition_has_is_used(ops: tuple[Op, ...], tensors: dict[str, Any]) -> None:
    content, operands = with_decomposition(*ops, **tensors)
    np.testing.assert_allclose(run_op(content, *operands)[0], formula(*operands, MASK), rtol=1e-5, atol=1e-5)


def test_a_decomposition_without_a_mask_needs_none() -> None:
    content, operands = with_decomposition(Op("TANH", "s", "u"), Op("MUL", "u z", "t"))
    np.testing.assert_allclose(run_op(content, *operands)[0], formula(*operands), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("ops", "tensors", "reason"),
    [
        ((ADD,), {"mask": MASK[:, :5], "t": Spec("float32", [1, 4, 3, 6])}, None),
        ((Op("ADD", "s mask", "u"), Op("ADD", "u mask", "t")), {"mask": MASK}, "(ADD)"),
        ((Op("SELECT_V2", "seen s z", "t"),), {"seen": MASK == 0}, "(SELECT_V2)"),
        ((Op("SUB", "s mask", "t"),), {"mask": MASK}, "(SUB)"),
        ((Op("ADD", "s mask", "u"), Op("MUL", "u z", "t")), {"mask": MASK}, "(ADD)"),
        ((Op("ADD", "s s", "t"),), {}, "(ADD)"),
    ],
)
def test_a_decomposition_that_may_have_another_mask_runs(
    ops: tuple[Op, ...], tensors: dict[str, Any], reason: str | None
) -> None:
    content, operands = with_decomposition(*ops, **tensors)
    if reason is None:
        with pytest.raises(PrepareError, match="do not broadcast|broadcast"):
            run_op(content, *operands)
        return
    assert f"it is given no mask, and its decomposition may have one of its own {reason}" in _why(content)
    assert not run_op(content, *operands)[0].any()


def _why(content: bytes) -> str:
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    return interpreter.explain()[0].why


def test_another_package_s_attention_goes_before_this_one() -> None:
    resolver = MutableOpResolver()
    registration = Registration(
        prepare=lambda context, node: context.resize_tensor(node.outputs[0], node.inputs[0].shape),
        invoke=lambda context, node: node.outputs[0].data.fill(7),
    )
    resolver.add_composite(NAME, registration)
    operands = usual()
    assert (run_op(model(*operands), *operands, op_resolver=resolver)[0] == 7).all()


CONTRACT = [normal(1, 3, 4, 8), normal(1, 6, 2, 8), normal(1, 6, 2, 8), normal(1, 1, 3, 6)]


class TestContract(OpContract):
    """The contract of a kernel, of a composite as of any op."""

    model = model(*CONTRACT, free=True)
    inputs = CONTRACT
    resized: ClassVar[Any] = [normal(2, 5, 4, 8), normal(2, 7, 2, 8), normal(2, 7, 2, 8), normal(2, 1, 5, 7)]
    empty: ClassVar[Any] = [normal(1, 0, 4, 8), normal(1, 6, 2, 8), normal(1, 6, 2, 8), normal(1, 1, 1, 6)]
