"""Random numbers with given seeds are TensorFlow's: integers and uniform floats to the last bit, normal ones to rounding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from plugins.flex_ops.tests.agreement import Case, apart, check_all, model_of, ops_of, refuses, resolver, run_case, type_of
from plugins.flex_ops.tests.nodedefs import flex_options

from oplet import Interpreter, TensorType
from oplet_testing import invoke_steps

Array = NDArray[Any]
FLOATS = [TensorType.FLOAT32, TensorType.FLOAT64, TensorType.FLOAT16, TensorType.BFLOAT16]
FULL = [TensorType.INT32, TensorType.INT64, TensorType.UINT32, TensorType.UINT64]
SHAPES = [(), (1,), (7,), (3, 5, 7), (0, 4), (40, 101)]


def int32(*values: int) -> Array:
    return np.array(values, "int32")


KEY = [np.array([0x123456789ABCDEF], "uint64"), np.array([2**64 - 3, 7], "uint64"), np.array(1, "int32")]


def stateless_cases() -> Iterator[Case]:
    for number, shape in enumerate(SHAPES):
        seed = np.array([number - 2, 17 - 5 * number], ["int32", "int64"][number % 2])
        size = np.array(shape, "int32")
        types = {"T": TensorType.INT32, "Tseed": type_of(seed)}
        fixed = (0,) if number % 2 else ()
        for kind in FLOATS:
            tolerance = None if kind is TensorType.FLOAT64 else 2e-6 if kind is TensorType.FLOAT32 else 2e-2
            for op in ("RandomUniform", "RandomNormal", "TruncatedNormal"):
                exact = 0.0 if op == "RandomUniform" else tolerance
                yield Case(f"Stateless{op}", [size, seed], {"dtype": kind, **types}, fixed, exact)
                yield Case(f"Stateless{op}V2", [size, *KEY], {"dtype": kind, "Tshape": TensorType.INT32}, fixed, exact)
        for kind in FULL:
            yield Case("StatelessRandomUniformFullInt", [size, seed], {"dtype": kind, **types}, fixed)
            yield Case("StatelessRandomUniformFullIntV2", [size, *KEY], {"dtype": kind, "Tshape": TensorType.INT32}, fixed)
            if kind in FULL[:2]:
                for low, high in ((0, 10), (-5, 3), (np.iinfo(kind.name.lower()).min, np.iinfo(kind.name.lower()).max)):
                    bounds = [np.array(each, kind.name.lower()) for each in (low, high)]
                    yield Case("StatelessRandomUniformInt", [size, seed, *bounds], {"dtype": kind, **types}, fixed)
                    yield Case(
                        "StatelessRandomUniformIntV2", [size, *KEY, *bounds], {"dtype": kind, "Tshape": TensorType.INT32}, fixed
                    )
        for op in ("StatelessRandomGetKeyCounter", "StatelessRandomGetKeyCounterAlg"):
            yield Case(op, [seed], {"Tseed": type_of(seed)})
    yield Case("StatelessRandomGetAlg", [])
    rng = np.random.default_rng(0)
    for rows, classes, count in ((1, 5, 50), (3, 2, 7), (2, 9, 0)):
        logits = rng.normal(size=(rows, classes)).astype("float32")
        logits[0, 1] = -np.inf
        for made in (TensorType.INT32, TensorType.INT64):
            given = [logits, np.array(count, "int32"), int32(3, 4)]
            yield Case("StatelessMultinomial", given, {"T": TensorType.FLOAT32, "Tseed": TensorType.INT32, "output_dtype": made})
    for array in (np.arange(30), np.arange(60.0).reshape(20, 3), np.zeros((0, 2)), np.array([b"a", b"b", b"c"], object)):
        yield Case("StatelessShuffle", [array, *KEY], {"T": type_of(array)})


@pytest.mark.sweep
def test_stateless_numbers_are_tensorflow_s() -> None:
    assert check_all(stateless_cases())[0] > 200


def stateful_cases() -> Iterator[Case]:
    for number, shape in enumerate(SHAPES[1:]):
        given = {"seed": 5 + number, "seed2": 99 - number}
        size = np.array(shape, "int32")
        for kind in FLOATS:
            tolerance = 1e-10 if kind is TensorType.FLOAT64 else 2e-6 if kind is TensorType.FLOAT32 else 2e-2
            for op in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal"):
                exact = 0.0 if op == "RandomUniform" else tolerance
                yield Case(op, [size], {"dtype": kind, "T": TensorType.INT32, **given}, (), exact)
        for kind in FULL[:2]:
            bounds = [np.array(each, kind.name.lower()) for each in (-3, 1000)]
            yield Case("RandomUniformInt", [size, *bounds], {"Tout": kind, "T": TensorType.INT32, **given})
    logits = np.random.default_rng(0).normal(size=(2, 5)).astype("float32")
    types = {"T": TensorType.FLOAT32, "output_dtype": TensorType.INT64}
    yield Case("Multinomial", [logits, np.array(9, "int32")], {**types, "seed": 4, "seed2": 0})
    for array in (np.arange(30), np.arange(60.0).reshape(20, 3)):
        yield Case("RandomShuffle", [array], {"T": type_of(array), "seed": 0, "seed2": 8})


def test_numbers_of_a_generator_go_on_from_invoke_to_invoke_as_in_tensorflow() -> None:
    tf = pytest.importorskip("tensorflow")
    cases = list(stateful_cases())
    graph, definition = tf.Graph(), tf.compat.v1.GraphDef()
    from flatbuffers import flexbuffers

    for number, case in enumerate(cases):
        node = definition.node.add()
        options = flexbuffers.GetRoot(bytearray(flex_options(case.op, case.attributes))).AsVector
        node.ParseFromString(bytes(options[1].AsStringBytes))
        node.name = f"node{number}"
        for place, array in enumerate(case.inputs):
            constant = definition.node.add(name=f"input{number}_{place}", op="Const")
            constant.attr["dtype"].type = tf.as_dtype(array.dtype).as_datatype_enum
            constant.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(array))
            node.input.append(constant.name)
    with graph.as_default(), tf.device("cpu"):
        tf.import_graph_def(definition, name="")
        fetches = [graph.get_operation_by_name(f"node{number}").outputs[0] for number in range(len(cases))]
        with tf.compat.v1.Session(graph=graph) as session:
            expected = [session.run(fetches) for _ in range(3)]
    assert len(cases) > 60
    for number, case in enumerate(cases):
        kind = type_of(expected[0][number])
        interpreter = Interpreter(model_content=model_of(case, [kind]), op_resolver=resolver(), plugins=[])
        for step, [found] in zip(expected, invoke_steps(interpreter, [case.inputs] * 3)):
            apart(case, found, step[number])


def test_without_seeds_every_interpreter_draws_other_numbers() -> None:
    case = Case("RandomUniform", [int32(20)], {"dtype": TensorType.FLOAT32, "T": TensorType.INT32})
    first, second = (run_case(case, [TensorType.FLOAT32])[0] for _ in range(2))
    assert ((first >= 0) & (first < 1)).all()
    assert not np.array_equal(first, second)


def test_a_seed_gives_each_interpreter_the_same_numbers_and_each_invoke_others() -> None:
    case = Case("RandomStandardNormal", [int32(20)], {"dtype": TensorType.FLOAT64, "T": TensorType.INT32, "seed": 3})
    runs = []
    for _ in range(2):
        interpreter = Interpreter(model_content=model_of(case, [TensorType.FLOAT64]), op_resolver=resolver(), plugins=[])
        runs.append([outputs[0] for outputs in invoke_steps(interpreter, [case.inputs] * 2)])
    np.testing.assert_array_equal(runs[0], runs[1])
    assert not np.array_equal(*runs[0])


@pytest.mark.parametrize(
    ("refused", "sentence"),
    [
        (Case("StatelessRandomUniform", [int32(2), int32(1, 2, 3)], {"dtype": TensorType.FLOAT32, "T": TensorType.INT32,
              "Tseed": TensorType.INT32}), "must hold two integers"),
        (Case("StatelessRandomUniform", [int32(-2), int32(1, 2)], {"dtype": TensorType.FLOAT32, "T": TensorType.INT32,
              "Tseed": TensorType.INT32}), "must not be negative"),
        (Case("StatelessRandomUniformV2", [int32(2), *KEY[:2], np.array(2, "int32")], {"dtype": TensorType.FLOAT32,
              "Tshape": TensorType.INT32}), "the algorithm is 2"),
        (Case("RandomUniformInt", [int32(2), np.array(5), np.array(5)], {"Tout": TensorType.INT64, "T": TensorType.INT32}),
         "Need minval < maxval"),
        (Case("StatelessMultinomial", [np.zeros((2, 0)), np.array(1, "int32"), int32(1, 2)],
              {"T": TensorType.FLOAT64, "Tseed": TensorType.INT32}), "one class or more"),
    ],
    ids=lambda value: value.op if isinstance(value, Case) else "",
)  # fmt: skip
def test_what_tensorflow_refuses_is_refused_with_a_sentence(refused: Case, sentence: str) -> None:
    made = TensorType.INT64 if "Int" in refused.op or "multi" in refused.op.lower() else TensorType.FLOAT32
    assert sentence in refuses(refused, [made])


def test_every_operator_of_the_family_is_compared() -> None:
    assert ops_of("random") == {case.op for cases in (stateless_cases(), stateful_cases()) for case in cases}
