"""Layers and gradients agree with TensorFlow's kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from plugins.flex_ops.tests.agreement import Case, apart, check_all, ops_of, refuses, run_case, tensorflow_batch, type_of

from oplet import TensorType

Array = NDArray[Any]
FLOATS = ["float32", "float64", "float16", "bfloat16"]
LOOSE = {"float16": 2e-2, "bfloat16": 1e-1, "float32": 2e-4, "float64": 1e-9}


def noise(type: str, *shape: int, seed: int = 0, low: float = -2, high: float = 2) -> Array:
    values = np.random.default_rng(seed).uniform(low, high, shape)
    if type.startswith("complex"):
        values = values + 1j * np.random.default_rng(seed + 1).uniform(low, high, shape)
    if type == "bfloat16":
        import ml_dtypes

        return values.astype(ml_dtypes.bfloat16)
    if "int" in type:
        values = np.round(10 * (values - (low if type[0] == "u" else 0)))
    return values.astype(type)


def case(op: str, inputs: list[Array], _constants: Any = (), _of: int = 0, **attributes: Any) -> Case:
    main = inputs[_of]
    return Case(op, inputs, {"T": type_of(main), **attributes}, _constants, LOOSE.get(main.dtype.name, 1e-5))


def int32(*values: int) -> Array:
    return np.array(values, "int32")


WINDOWS: list[dict[str, Any]] = [
    {"strides": [1, 1, 1, 1], "padding": "SAME"},
    {"strides": [1, 2, 2, 1], "padding": "SAME"},
    {"strides": [1, 2, 2, 1], "padding": "VALID"},
    {"strides": [1, 1, 1, 1], "padding": "VALID", "dilations": [1, 2, 2, 1]},
    {"strides": [1, 2, 2, 1], "padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 2, 0, 1, 0, 0]},
]


def outputs_of(op: str, inputs: list[Array], attributes: dict[str, Any]) -> Any:
    """The shape of a convolution's result."""
    return run_case(case(op, inputs, **attributes), [type_of(inputs[0])])[0].shape


def convolution_cases() -> Iterator[Case]:
    for number, attributes in enumerate(WINDOWS):
        dilated = "dilations" in attributes
        for type in FLOATS:
            for batch, size, filters in (
                (2, (7, 9, 4), (3, 3, 4, 5)),
                (1, (8, 8, 3), (2, 3, 3, 2)),
                (2, (6, 6, 4), (1, 1, 4, 6)),
            ):
                source, weights = noise(type, batch, *size), noise(type, *filters, seed=1)
                shape = outputs_of("Conv2D", [source, weights], attributes)
                gradient = noise(type, *shape, seed=2)
                yield case("Conv2D", [source, weights], [1] if number % 2 else [], **attributes)
                if dilated:
                    continue  # TensorFlow's gradients for the CPU know no dilation; see the test of adjoints
                yield case("Conv2DBackpropInput", [int32(*source.shape), weights, gradient], [0], 1, **attributes)
                yield case(
                    "Conv2DBackpropFilter", [source, int32(*weights.shape), gradient], [] if number % 2 else [1], **attributes
                )
                if attributes["padding"] == "EXPLICIT" and type in ("bfloat16", "float16"):
                    continue
                separate = noise(type, *filters[:3], 2, seed=3)
                yield case("DepthwiseConv2dNative", [source, separate], **attributes)
                shape = outputs_of("DepthwiseConv2dNative", [source, separate], attributes)
                gradient = noise(type, *shape, seed=4)
                yield case("DepthwiseConv2dNativeBackpropInput", [int32(*source.shape), separate, gradient], [0], 1, **attributes)
                yield case("DepthwiseConv2dNativeBackpropFilter", [source, int32(*separate.shape), gradient], [1], **attributes)
    plain = WINDOWS[0]
    yield case("Conv2D", [noise("int32", 1, 5, 5, 2), noise("int32", 3, 3, 2, 3)], **plain)
    source, weights = noise("float32", 2, 6, 6, 4), noise("float32", 3, 3, 2, 6)
    yield case("Conv2D", [source, weights], **plain)


POOLS: list[dict[str, Any]] = [
    {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"},
    {"ksize": [1, 3, 2, 1], "strides": [1, 1, 2, 1], "padding": "SAME"},
    {"ksize": [1, 3, 3, 1], "strides": [1, 2, 2, 1], "padding": "VALID"},
    {"ksize": [1, 3, 3, 1], "strides": [1, 2, 2, 1], "padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 1, 0, 1, 0, 0]},
]


def pool_cases() -> Iterator[Case]:
    for attributes in POOLS:
        explicit = attributes["padding"] == "EXPLICIT"
        sizes = [int32(*attributes["ksize"]), int32(*attributes["strides"])]
        for type in [*FLOATS, "int8", "int32", "int64", "uint8"]:
            source = noise(type, 2, 7, 6, 3)
            source[:, ::2, 1::3] = source[:, :1, :1]  # equal values
            [pooled] = run_case(case("MaxPool", [source], **attributes), [type_of(source)])
            gradient = noise(type, *pooled.shape, seed=2)
            yield case("MaxPool", [source], **attributes)
            yield case("MaxPoolGrad", [source, pooled, gradient], **attributes)
            if explicit:
                continue
            yield case("MaxPoolV2", [source, *sizes], padding=attributes["padding"])
            yield case("MaxPoolGradV2", [source, pooled, gradient, *sizes], [3, 4], padding=attributes["padding"])
            for batch in (False, True):
                places = np.random.default_rng(0).integers(0, source.size // 2, pooled.shape)
                given = {"Targmax": TensorType.INT64, "include_batch_in_index": batch}
                places = places + np.arange(2)[:, None, None, None] * (source.size // 2) * batch
                yield case("MaxPoolGradWithArgmax", [source, gradient, places], **attributes, **given)
            if type in FLOATS:
                yield case("AvgPool", [source], **attributes)
                yield case("AvgPoolGrad", [int32(*source.shape), gradient], [0], 1, **attributes)


def gradient_cases() -> Iterator[Case]:
    for op in ("ReluGrad", "Relu6Grad"):
        for type in [*FLOATS, "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]:
            yield case(op, [noise(type, 5, 7), noise(type, 5, 7, seed=1, low=-9, high=9)])
    for op in ("EluGrad", "SeluGrad", "SoftplusGrad", "SoftsignGrad"):
        for type in FLOATS:
            yield case(op, [noise(type, 5, 7), noise(type, 5, 7, seed=1, low=-0.9)])
    for type in FLOATS:
        yield case("LeakyReluGrad", [noise(type, 5, 7), noise(type, 5, 7, seed=1)], alpha=0.3)
    for op in ("SigmoidGrad", "TanhGrad", "SqrtGrad", "RsqrtGrad", "InvGrad", "ReciprocalGrad"):
        for type in [*FLOATS, "complex64", "complex128"]:
            yield case(op, [noise(type, 5, 7, low=0.2), noise(type, 5, 7, seed=1)])
    for type in [*FLOATS, "complex64", "complex128", "int32", "int64", "uint8"]:
        yield case("BiasAddGrad", [noise(type, 2, 3, 4)])
        yield case("BiasAddGrad", [noise(type, 2, 4, 3)], data_format="NCHW")
    for type in FLOATS:
        for left, right in (((4, 6), (4, 6)), ((4, 6), (1, 6)), ((1, 6), (4, 6)), ((0, 6), (0, 6))):
            labels = np.abs(noise("float64", *right, seed=1))
            labels[:, 0] = 0
            given = (labels / np.maximum(labels.sum(-1, keepdims=True), 1e-3)).astype(noise(type, 1).dtype)
            yield case("SoftmaxCrossEntropyWithLogits", [noise(type, *left, high=9), given])
        for index in ("int32", "int64"):
            yield case("SparseSoftmaxCrossEntropyWithLogits", [noise(type, 4, 6, high=9), np.array([0, 5, 2, 2], index)],
                       Tlabels=TensorType[index.upper()])  # fmt: skip
    for type in ("float32", "float16"):
        for radius in (0, 2):
            source = noise(type, 2, 3, 4, 6)
            given = {"depth_radius": radius, "bias": 1.5, "alpha": 0.3, "beta": 0.7}
            [result] = run_case(case("LRN", [source], **given), [type_of(source)])
            yield case("LRNGrad", [noise(type, 2, 3, 4, 6, seed=2), source, result], **given)


PLAIN = {"strides": [1, 1, 1, 1], "padding": "VALID"}
F64 = TensorType.FLOAT64
GROUPS = [convolution_cases, pool_cases, gradient_cases]


@pytest.mark.sweep
@pytest.mark.parametrize("cases", GROUPS, ids=lambda cases: cases.__name__)
def test_layers_and_gradients_agree_with_tensorflow(cases: Any) -> None:
    count, _ = check_all(cases())
    assert count > 50


def test_gradients_of_convolutions_are_adjoint_to_them_whatever_the_windows() -> None:
    for number, attributes in enumerate([*WINDOWS, {"strides": [1, 3, 1, 1], "padding": "SAME", "dilations": [1, 1, 2, 1]}]):
        for op, results in (("Conv2D", 6), ("DepthwiseConv2dNative", 2)):
            source, weights = (
                noise("float64", 2, 9, 8, 4),
                noise("float64", 3, 2, 2 if op == "Conv2D" and number % 2 else 4, results, seed=1),
            )
            [made] = run_case(case(op, [source, weights], **attributes), [F64])
            gradient = noise("float64", *made.shape, seed=2)
            [of_source] = run_case(
                case(f"{op}BackpropInput", [int32(*source.shape), weights, gradient], (), 1, **attributes), [F64]
            )
            [of_weights] = run_case(case(f"{op}BackpropFilter", [source, int32(*weights.shape), gradient], **attributes), [F64])
            # The operator is linear in each operand, so all three products are the same number.
            np.testing.assert_allclose((of_source * source).sum(), (made * gradient).sum(), rtol=1e-10)
            np.testing.assert_allclose((of_weights * weights).sum(), (made * gradient).sum(), rtol=1e-10)


def norm_cases() -> Iterator[Case]:
    statistics = [noise("float32", 5, seed=s, low=0.3) for s in range(4)]
    empty = [np.zeros(0, "float32")] * 2
    for version, suffix in ((1, ""), (2, "V2"), (3, "V3")):
        for type in ("float32", "float16", "bfloat16") if version > 1 else ("float32",):
            types = {"U": TensorType.FLOAT32} if version > 1 else {}
            for data_format, shape in (("NHWC", (2, 3, 4, 5)), ("NCHW", (2, 5, 3, 4)), ("NDHWC", (2, 2, 3, 2, 5))):
                if len(shape) == 5 and version < 3:
                    continue
                source = noise(type, *shape)
                common = {**types, "data_format": data_format, "epsilon": 0.01}
                yield case(f"FusedBatchNorm{suffix}", [source, *statistics], **common, is_training=False)
                yield case(f"FusedBatchNorm{suffix}", [source, *statistics[:2], *empty], **common, is_training=True)
                yield case(
                    f"FusedBatchNorm{suffix}", [source, *statistics], **common, is_training=True, exponential_avg_factor=0.3
                )
                gradient = noise(type, *shape, seed=9)
                more = [np.zeros((), "float32")] if version == 3 else []
                for training in (True, False) if data_format != "NCHW" else (True,):
                    given = [gradient, source, *statistics[1:], *more]
                    yield case(f"FusedBatchNormGrad{suffix}", given, **common, is_training=training)


def test_batch_norms_and_their_gradients_agree_with_tensorflow() -> None:
    cases = list(norm_cases())
    for each, expected in zip(cases, tensorflow_batch(cases)):
        found = run_case(each, [type_of(array) for array in expected])
        for number, (ours, theirs) in enumerate(zip(found, expected)):
            reserved = 2 if "Grad" in each.op else 4 if each.attributes["is_training"] else 2
            if number <= reserved:  # in the others TensorFlow leaves what was in the memory
                apart(each._replace(tolerance=LOOSE[each.inputs[0].dtype.name]), ours, theirs)


@pytest.mark.parametrize(
    ("refused", "sentence"),
    [
        (case("Conv2D", [noise("float64", 1, 4, 4, 3), noise("float64", 2, 2, 2, 4)], **PLAIN), "no multiple"),
        (case("Conv2D", [noise("float64", 1, 4, 4), noise("float64", 2, 2, 2, 4)], **PLAIN), "four dimensions"),
        (case("Conv2D", [noise("float64", 1, 4, 4, 2), noise("float64", 2, 2, 2, 4)], padding="VALID", strides=[1, 1, 1, 2]), "strides"),
        (case("Conv2D", [noise("float64", 1, 4, 4, 2), noise("float64", 5, 5, 2, 4)], **PLAIN), "do not fit into 4 values"),
        (case("Conv2DBackpropInput", [int32(1, 4, 4, 2), noise("float64", 2, 2, 2, 4), noise("float64", 1, 4, 4, 4)], (), 1, **PLAIN),
         "must have the shape [1, 3, 3, 4]"),
        (case("MaxPool", [noise("float64", 1, 4, 4, 2)], ksize=[1, 2, 2, 2], strides=[1, 1, 1, 1], padding="SAME"), "ksize"),
        (case("ReluGrad", [noise("float64", 2), noise("float64", 3)]), "same shape"),
        (case("SparseSoftmaxCrossEntropyWithLogits", [noise("float64", 1, 3), np.array([3])], Tlabels=TensorType.INT64),
         "outside the valid range of [0, 3)"),
    ],
    ids=lambda value: value.op if isinstance(value, Case) else "",
)  # fmt: skip
def test_what_tensorflow_refuses_is_refused_with_a_sentence(refused: Case, sentence: str) -> None:
    assert sentence in refuses(refused, [F64] * (2 if "Entropy" in refused.op else 1))


def test_every_operator_of_the_family_is_compared() -> None:
    compared = {each.op for cases in (*GROUPS, norm_cases) for each in cases()}
    stateful = ops_of("gradients", "variables", "optimizers")
    layers = {"Conv2D", "DepthwiseConv2dNative", *ops_of("arithmetic", "pooling", "normalization")}
    assert compared - {"LRN"} == (ops_of("gradients") - stateful) | layers
