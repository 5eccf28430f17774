"""Layers of floats and integer weights: LiteRT's default answers, which XNNPACK gives where it claims the layer, and its own kernels'.

Each layer is drawn from its number, so that a failure is repeated by its name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.differential.harness import Case, LiteRT

from oplet import Interpreter, OpResolverType, TensorType
from oplet.schema.enums import ActivationFunctionType, Padding
from oplet.schema.options import (
    BatchMatMulOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    TransposeConvOptions,
)
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec

Array = np.ndarray[Any, Any]
OWN = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
LIMITS = {TensorType.INT8: 127, TensorType.INT4: 7, TensorType.INT2: 1}
#: Activations that XNNPACK fuses, and those of them that are drawn more often.
CLAMPS = [ActivationFunctionType(number) for number in (0, 0, 0, 1, 2, 3)]
NOT_CLAMPS = (ActivationFunctionType.TANH, ActivationFunctionType.SIGN_BIT)


class Layer(NamedTuple):
    """A layer that was drawn.

    Attributes:
        model: the bytes of its model.
        feeds: what its inputs are set to.
        claimed: whether XNNPACK claims it.
        exact: whether the bits of LiteRT's own kernels are compared, in place of values near them.
    """

    model: bytes
    feeds: list[Array]
    claimed: bool
    exact: bool = True


class Drawing:
    """Draws the parts of a layer."""

    def __init__(self, number: int) -> None:
        self.random = np.random.default_rng(number)
        self.claimed = True

    def one_of(self, *choices: Any) -> Any:
        return choices[self.random.integers(len(choices))]

    def size(self, most: int, least: int = 1) -> int:
        return int(self.random.integers(least, most + 1))

    def rarely(self, *, spoils: bool = True) -> bool:
        """Whether something is as XNNPACK does not take it, in one of ten draws."""
        found = bool(self.random.integers(10) == 0)
        self.claimed = self.claimed and not (found and spoils)
        return found

    def values(self, *shape: int) -> Array:
        """Activations, of which some are halves of a step, or all of one sign."""
        made = self.random.normal(self.one_of(0, 0.3, -2), 1, shape)
        made = np.abs(made) if self.random.integers(4) == 0 else made
        return (np.round(made * 20) / 20 if self.random.integers(3) == 0 else made).astype(np.float32)

    def weights(self, kind: TensorType, shape: tuple[int, ...], axis: int, *, single: bool | None = None) -> tuple[Spec, Array]:
        limit = LIMITS[kind]
        data = self.random.integers(-limit, limit + 1, shape).astype(np.int8)
        single = bool(self.random.integers(2)) if single is None else single
        scales = self.random.uniform(0.01, 0.1, 1 if single else shape[axis]).astype(np.float32)
        return Spec(kind, shape, scales, [0] * len(scales), axis, data=data), data

    def activation(self, *others: ActivationFunctionType) -> ActivationFunctionType:
        found: ActivationFunctionType = self.one_of(*others) if others and self.rarely() else self.one_of(*CLAMPS)
        return found

    def bias(self, units: int, given: list[Any], feeds: list[Array], *, optional: bool) -> None:
        values = self.random.normal(0, 1, units).astype(np.float32)
        if optional and self.random.integers(4) == 0:
            given.append(None)
        elif self.rarely():
            given.append(Spec("float32", [units]))
            feeds.append(values)
        else:
            given.append(values)


def fully_connected(number: int) -> Layer:
    draw = Drawing(number)
    kind = draw.one_of(*LIMITS)
    depth, units = draw.size(draw.one_of(12, 80, 700)), draw.size(draw.one_of(3, 70))
    multiple = {TensorType.INT8: 1, TensorType.INT4: 2, TensorType.INT2: 4}[kind]
    if depth % multiple and not draw.rarely():
        depth += multiple - depth % multiple
    single = draw.rarely(spoils=units > 1) if kind is TensorType.INT2 else None
    draw.claimed = draw.claimed and depth % multiple == 0
    weights, _ = draw.weights(kind, (units, depth), 0, single=single)
    rows = tuple(draw.size(5) for _ in range(draw.size(3, 0)))
    keep = draw.one_of(True, False) if rows else True
    given: list[Any] = [Spec("float32", [*rows, depth]), weights]
    feeds = [draw.values(*rows, depth)]
    draw.bias(units, given, feeds, optional=True)
    activation = draw.activation(*NOT_CLAMPS)
    options = FullyConnectedOptions(
        fused_activation_function=activation, keep_num_dims=keep, asymmetric_quantize_inputs=draw.one_of(True, False)
    )
    out = Spec("float32", [*rows, units] if keep else [int(np.prod(rows)), units])
    model = one_op_model("FULLY_CONNECTED", given, [out], options, version=12)
    return Layer(model, feeds, draw.claimed, activation is not ActivationFunctionType.TANH)


def windows(draw: Drawing) -> dict[str, Any]:
    return {
        "padding": draw.one_of(*Padding),
        "stride_h": draw.one_of(1, 1, 2),
        "stride_w": draw.one_of(1, 1, 2, 3),
    }


def conv_2d(number: int) -> Layer:
    draw = Drawing(number)
    kind = TensorType.INT4 if draw.rarely() else TensorType.INT8
    groups, depth, height, width = draw.one_of(1, 1, 2), draw.size(draw.one_of(3, 40)), draw.size(9, 4), draw.size(9, 4)
    filters, taps = draw.size(draw.one_of(3, 20)) * groups, draw.one_of((1, 1), (1, 1), (3, 3), (1, 3), (2, 2), (height, width))
    # LiteRT's own kernel knows no groups with one scale, and no such groups with INT4.
    kind = TensorType.INT8 if groups > 1 and kind is TensorType.INT4 else kind
    draw.claimed = draw.claimed or kind is TensorType.INT8
    weights, _ = draw.weights(kind, (filters, *taps, depth), 0, single=False if groups > 1 else None)
    source = draw.size(3), height, width, depth * groups
    given: list[Any] = [Spec("float32", source), weights]
    feeds = [draw.values(*source)]
    draw.bias(filters, given, feeds, optional=False)
    options = Conv2DOptions(fused_activation_function=draw.activation(), **windows(draw))
    model = one_op_model("CONV_2D", given, [Spec("float32", [1, 1, 1, filters])], options, version=8)
    return Layer(model, feeds, draw.claimed, groups == 1 and kind is TensorType.INT8)


def depthwise_conv_2d(number: int) -> Layer:
    draw = Drawing(number)
    channels, times = draw.size(9), draw.size(3)
    weights, _ = draw.weights(TensorType.INT8, (1, draw.size(3), draw.size(3), channels * times), 3, single=False)
    source = draw.size(2), draw.size(8, 3), draw.size(8, 3), channels
    given: list[Any] = [Spec("float32", source), weights, draw.values(channels * times)]
    options = DepthwiseConv2DOptions(depth_multiplier=times, fused_activation_function=draw.activation(), **windows(draw))
    model = one_op_model("DEPTHWISE_CONV_2D", given, [Spec("float32", [1, 1, 1, channels * times])], options, version=6)
    return Layer(model, [draw.values(*source)], False, exact=False)


def transpose_conv(number: int) -> Layer:
    draw = Drawing(number)
    where = windows(draw)
    rows, columns, depth, filters = draw.size(4), draw.size(4), draw.size(20), draw.size(9)
    batch, height, width = draw.size(2), draw.size(6), draw.size(6)
    same = where["padding"] is Padding.SAME
    if same:
        draw.claimed = rows >= where["stride_h"] and columns >= where["stride_w"]
        out = [batch, height * where["stride_h"], width * where["stride_w"], filters]
    else:
        out = [batch, (height - 1) * where["stride_h"] + rows, (width - 1) * where["stride_w"] + columns, filters]
    weights, _ = draw.weights(TensorType.INT8, (filters, rows, columns, depth), 0)
    shape = np.array(out, np.int32)
    fed = draw.rarely()
    source = batch, height, width, depth
    given: list[Any] = [Spec("int32", [4]) if fed else shape, weights, Spec("float32", source)]
    feeds = [*([shape] if fed else []), draw.values(*source)]
    if draw.one_of(True, False):
        given.append(draw.values(filters))
    options = TransposeConvOptions(fused_activation_function=draw.activation(), **where)
    model = one_op_model("TRANSPOSE_CONV", given, [Spec("float32", out)], options, version=5)
    return Layer(model, feeds, draw.claimed, exact=False)


def batch_matmul(number: int) -> Layer:
    draw = Drawing(number)
    rows, depth, columns = draw.size(draw.one_of(1, 9)), draw.size(draw.one_of(9, 200)), draw.size(draw.one_of(1, 40))
    adj_x, adj_y = draw.one_of(False, True), draw.one_of(False, True)
    many = draw.one_of((), (2,), (3,), (2, 3), (2, 1, 3))
    left_many = tuple(1 if draw.one_of(True, False, False) else size for size in many)
    right_many = tuple(size if left == 1 else draw.one_of(1, size) for left, size in zip(left_many, many))
    right_many = right_many[draw.size(len(right_many), 0) :] if all(size == 1 for size in right_many) else right_many
    left = *left_many, *((depth, rows) if adj_x else (rows, depth))
    shape = *right_many, *((columns, depth) if adj_y else (depth, columns))
    weights, _ = draw.weights(TensorType.INT8, shape, len(shape) - (2 if adj_y else 1))
    options = BatchMatMulOptions(adj_x=adj_x, adj_y=adj_y, asymmetric_quantize_inputs=draw.one_of(True, False))
    out = Spec("float32", [*np.broadcast_shapes(left_many, right_many), rows, columns])
    model = one_op_model("BATCH_MATMUL", [Spec("float32", left), weights], [out], options, version=4)
    # LiteRT's own kernel takes scales of other rows from two batch dimensions on, and no more than three.
    return Layer(model, [draw.values(*left)], True, exact=len(many) < 2 and len(weights.scale) == 1)


MAKERS: dict[str, Callable[[int], Layer]] = {
    "FULLY_CONNECTED": fully_connected,
    "CONV_2D": conv_2d,
    "DEPTHWISE_CONV_2D": depthwise_conv_2d,
    "TRANSPOSE_CONV": transpose_conv,
    "BATCH_MATMUL": batch_matmul,
}
#: The layers that are drawn: enough for each edge of the rule to come in some of them, and many.
FEW, MANY = range(30), range(30, 150)


@pytest.fixture(params=[FEW, pytest.param(MANY, marks=pytest.mark.sweep)], ids=["few", "many"])
def numbers(request: pytest.FixtureRequest) -> range:
    """The numbers of the layers to draw."""
    found: range = request.param
    return found


def distance(found: Array, wanted: Array) -> float:
    assert found.shape == wanted.shape
    return float(np.abs(found.astype(np.float64) - wanted).max(initial=0) / max(1e-30, float(np.abs(wanted).max(initial=0))))


def difference_from_own(litert: LiteRT, layer: Layer, found: Array) -> str:
    """How an answer differs from that of LiteRT's own kernels; "" if from one of its two sets it does not. With INT4 weights the
    optimized ones are wrong for some shapes (docs/numerics.md)."""
    answers = [litert.run(Case(layer.model, [layer.feeds]), kind, seconds=30) for kind in (OWN.name, "BUILTIN_REF")]
    wanted = [answer.outputs[0][0] for answer in answers if answer.kind == "ran"]
    if not wanted:
        return "none of them runs it"
    if any(np.array_equal(found, each) for each in wanted):
        return ""
    off = min(distance(found, each) for each in wanted)
    return f"{off:.2g}" if layer.exact or off > 1e-5 else ""


@pytest.mark.parametrize("op", list(MAKERS))
def test_default_answers_are_those_of_litert_s_default(litert: LiteRT, engine: list[str], op: str, numbers: range) -> None:
    wrong, claimed = [], 0
    for number in numbers:
        layer = MAKERS[op](number)
        found = run_op(layer.model, *layer.feeds, plugins=engine)[0]
        if layer.claimed:
            claimed += 1
            answer = litert.run(Case(layer.model, [layer.feeds]), "AUTO", seconds=30)
            assert answer.kind == "ran", f"{op} {number}: {answer.message}"
            off = distance(found, answer.outputs[0][0])
            different = f"{off:.2g}" if off > 1e-6 else ""
        else:
            different = difference_from_own(litert, layer, found)
        if different:
            wrong.append(f"{op} {number}: {different}")
    assert not wrong, "; ".join(wrong)
    assert claimed > len(numbers) // 3 or op == "DEPTHWISE_CONV_2D"


@pytest.mark.parametrize("op", list(MAKERS))
def test_without_default_delegates_answers_are_those_of_litert_s_own_kernels(
    litert: LiteRT, engine: list[str], op: str, numbers: range
) -> None:
    wrong, compared = [], 0
    for number in numbers:
        layer = MAKERS[op](number)
        if op == "BATCH_MATMUL" and not layer.exact:
            continue  # LiteRT's own kernel is wrong
        compared += 1
        found = run_op(layer.model, *layer.feeds, plugins=engine, experimental_op_resolver_type=OWN)[0]
        if different := difference_from_own(litert, layer, found):
            wrong.append(f"{op} {number}: {different}")
    assert not wrong, "; ".join(wrong)
    assert compared > len(numbers) // 4


@pytest.mark.parametrize("op", list(MAKERS))
def test_explain_tells_whose_numbers_a_layer_has(op: str) -> None:
    for number in (*FEW, *MANY):
        layer = MAKERS[op](number)
        [default] = Interpreter(model_content=layer.model).explain()
        assert ("its numbers are XNNPACK's" in default.why) is layer.claimed, f"{op} {number}: {default.why}"
        assert ("its numbers are those of LiteRT's own kernels: XNNPACK" in default.why) is not layer.claimed
        [own] = Interpreter(model_content=layer.model, experimental_op_resolver_type=OWN).explain()
        assert "those of LiteRT's own kernels, as the resolver type wants" in own.why


def test_both_ways_are_there_for_one_model_at_a_time() -> None:
    """Interpreters of one model share packed weights and plans, of which none may bring the other's numbers."""
    layer = next(layer for layer in map(fully_connected, FEW) if layer.claimed and layer.feeds[0].size > 1000)
    kinds = [OpResolverType.AUTO, OWN, OpResolverType.BUILTIN, OpResolverType.BUILTIN_REF] * 2
    answers = [run_op(layer.model, *layer.feeds, experimental_op_resolver_type=kind)[0] for kind in kinds]
    assert not np.array_equal(answers[0], answers[1])
    for number, answer in enumerate(answers):
        np.testing.assert_array_equal(answer, answers[number % 2])


def test_layers_of_constants_are_computed_in_each_way_too() -> None:
    draw = Drawing(5)
    weights, _ = draw.weights(TensorType.INT8, (6, 40), 0, single=True)
    inputs = [draw.values(3, 40), weights, draw.values(6)]
    model = one_op_model("FULLY_CONNECTED", inputs, [Spec("float32", [3, 6])], FullyConnectedOptions(), version=12)
    fed = one_op_model(
        "FULLY_CONNECTED", [Spec("float32", [3, 40]), *inputs[1:]], [Spec("float32", [3, 6])], FullyConnectedOptions(), version=12
    )
    for kind in (OpResolverType.AUTO, OWN, OpResolverType.AUTO):
        [folded] = run_op(model, experimental_op_resolver_type=kind)
        np.testing.assert_array_equal(folded, run_op(fed, inputs[0], experimental_op_resolver_type=kind)[0])


@pytest.mark.parametrize(("scale", "zero_point"), [(0.0, 0), (1e-39, 0), (0.02, 3)])
@pytest.mark.parametrize("op", ["FULLY_CONNECTED", "BATCH_MATMUL"])
def test_what_xnnpack_claims_and_then_refuses_has_the_numbers_of_litert_s_own_kernels(
    litert: LiteRT, engine: list[str], op: str, scale: float, zero_point: int
) -> None:
    draw = Drawing(1)
    weights = draw.weights(TensorType.INT8, (12, 12), 0, single=True)[0]._replace(scale=[scale], zero_point=[zero_point])
    options = FullyConnectedOptions() if op == "FULLY_CONNECTED" else BatchMatMulOptions()
    out = Spec("float32", [3, 12])
    model = one_op_model(op, [Spec("float32", [3, 12]), weights], [out], options, version=4)
    case = Case(model, [[draw.values(3, 12)]])
    # Scales of a BATCH_MATMUL are checked before it is claimed.
    assert litert.run(case, "AUTO", seconds=30).kind == ("refused" if op == "FULLY_CONNECTED" or zero_point else "ran")
    answer = litert.run(case, OWN.name, seconds=30)
    for kind in (OpResolverType.AUTO, OWN):
        found = run_op(model, *case.steps[0], plugins=engine, experimental_op_resolver_type=kind)[0]
        np.testing.assert_array_equal(found, answer.outputs[0][0])
