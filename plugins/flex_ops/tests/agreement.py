"""One Flex node run by this package and by TensorFlow, and how far their results are apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from flatbuffers import flexbuffers
from numpy.typing import NDArray
from plugins.flex_ops.tests.nodedefs import flex_options
from plugins.flex_ops.tests.oracle import tensorflow_results

from oplet import MutableOpResolver, TensorType
from oplet.errors import OpletError
from oplet_flex_ops import OPS, UNPREFIXED, register_ops
from oplet_testing import Spec, one_op_model, run_op

Arrays = list[NDArray[Any]]

#: The relative error that a result may have by its type, and the magnitude below which errors count as absolute.
TOLERANCES = {"float16": 1.5e-3, "bfloat16": 1.2e-2, "float32": 2e-6, "float64": 1e-10, "complex64": 4e-6, "complex128": 1e-10}


class Case(NamedTuple):
    """One node.

    Attributes:
        op: TensorFlow's name of the operator.
        inputs: its inputs.
        attributes: its attributes.
        constants: the positions of inputs that are constants of the model.
        tolerance: the relative error that floats may have; None for that of their type.
    """

    op: str
    inputs: Sequence[NDArray[Any]]
    attributes: Mapping[str, Any] = {}
    constants: Sequence[int] = ()
    tolerance: float | None = None

    def __str__(self) -> str:
        given = ", ".join(f"{array.dtype.name}{list(array.shape)}" for array in self.inputs)
        return f"{self.op}({given}; {dict(self.attributes)})"


def resolver() -> MutableOpResolver:
    """A resolver with this package alone."""
    made = MutableOpResolver()
    register_ops(made)
    return made


_RESOLVER = resolver()


def ops_of(family: str, *modules: str) -> set[str]:
    """The operators of a family, or of some of its modules."""
    return {op for module, ops in OPS[family].items() if not modules or module in modules for op in ops.split()}


def type_of(array: NDArray[Any]) -> TensorType:
    """The tensor type of an array."""
    return TensorType.STRING if array.dtype == object else TensorType[array.dtype.name.upper()]


def model_of(case: Case, outputs: Sequence[TensorType]) -> bytes:
    """The model of one node."""
    inputs = [
        array if position in case.constants and array.dtype != object else Spec(type_of(array), array.shape)
        for position, array in enumerate(case.inputs)
    ]
    specs = [Spec(type, [1]) for type in outputs]
    return one_op_model(f"Flex{case.op}", inputs, specs, custom_options=flex_options(case.op, case.attributes))


def run_case(case: Case, outputs: Sequence[TensorType]) -> Arrays:
    """The outputs of this package's kernel."""
    fed = [array for position, array in enumerate(case.inputs) if position not in case.constants]
    return run_op(model_of(case, outputs), *fed, op_resolver=_RESOLVER, plugins=[])


def tensorflow_batch(cases: Sequence[Case]) -> list[Arrays]:
    """The outputs of many nodes in TensorFlow, in one session; as `tensorflow_results` for each."""
    tf = pytest.importorskip("tensorflow")
    options = tf.compat.v1.ConfigProto()
    options.graph_options.rewrite_options.disable_meta_optimizer = True
    options.graph_options.optimizer_options.opt_level = -1  # as the kernels compute, without folding of constants
    graph, definition = tf.Graph(), tf.compat.v1.GraphDef()
    for number, case in enumerate(cases):
        node = definition.node.add()
        data = flexbuffers.GetRoot(bytearray(flex_options(case.op, case.attributes))).AsVector[1].AsStringBytes
        node.ParseFromString(bytes(data))
        node.name = f"node{number}"
        for place, array in enumerate(case.inputs):
            constant = definition.node.add(name=f"input{number}_{place}", op="Const")
            constant.attr["dtype"].type = (tf.string if array.dtype == object else tf.as_dtype(array.dtype)).as_datatype_enum
            constant.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(array))
            node.input.append(constant.name)
    with graph.as_default(), tf.device("cpu"):
        tf.import_graph_def(definition, name="")
        fetches = [list(graph.get_operation_by_name(f"node{number}").outputs) for number in range(len(cases))]
        with tf.compat.v1.Session(graph=graph, config=options) as session:
            return [
                [np.asarray(value, object if isinstance(value, bytes) else None) for value in values]
                for values in session.run(fetches)
            ]


def apart(case: Case, ours: NDArray[Any], theirs: NDArray[Any]) -> float:
    """The largest relative error of one output."""
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), (
        f"{case}: {ours.dtype}{ours.shape} {theirs.dtype}{theirs.shape}"
    )
    if theirs.dtype.name not in TOLERANCES:
        assert ours.tolist() == theirs.tolist(), f"{case}: {ours}, TensorFlow {theirs}"
        return 0.0
    tolerance = TOLERANCES[theirs.dtype.name] if case.tolerance is None else case.tolerance
    kind = np.complex128 if theirs.dtype.kind == "c" else np.float64
    a, b = ours.astype(kind).ravel(), theirs.astype(kind).ravel()
    odd = ~np.isfinite(b)
    np.testing.assert_array_equal(a[odd], b[odd], err_msg=str(case))
    a, b = a[~odd], b[~odd]
    # Kernels of halves round every step, so that small results of larger parts have larger relative errors.
    floor = 0.25 if theirs.dtype.itemsize == 2 else 1e-3
    scale = np.maximum(np.abs(b), floor * max(float(np.abs(b).max(initial=0.0)), 1e-3))
    errors = np.abs(a - b) / scale
    worst = float(errors.max(initial=0.0))
    assert worst <= tolerance, f"{case}: relative error {worst:.2e} of {a[errors.argmax()]}, TensorFlow {b[errors.argmax()]}"
    return worst


def check_all(cases: Iterable[Case]) -> tuple[int, float]:
    """Compare all cases and tell all failures at once; returns their number and the largest error."""
    cases = list(cases)
    failures, worst = [], 0.0
    for case, expected in zip(cases, tensorflow_batch(cases)):
        try:
            found = run_case(case, [type_of(each) for each in expected])
            worst = max([worst, *(apart(case, ours, theirs) for ours, theirs in zip(found, expected))])
        except AssertionError as error:
            failures.append(str(error)[:400])
        except OpletError as error:
            failures.append(f"{case}: {error}"[:600])
    assert not failures, f"{len(failures)} of {len(cases)}:\n" + "\n".join(failures)
    return len(cases), worst


def refuses(case: Case, outputs: Sequence[TensorType]) -> str:
    """The sentence with which this package refuses a node that TensorFlow refuses too."""
    with pytest.raises(Exception, match=r"."):
        tensorflow_results(case.op, case.inputs, case.attributes)
    with pytest.raises(OpletError) as refused:
        run_case(case, outputs)
    return str(refused.value)


__all__ = ["UNPREFIXED", "Case", "apart", "check_all", "model_of", "ops_of", "refuses", "resolver", "run_case", "type_of"]
