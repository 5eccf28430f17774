"""Comparison of operators with TensorFlow, case by case: equal results, or a refusal on both sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from plugins.flex_ops.tests.nodedefs import flex_options
from plugins.flex_ops.tests.oracle import tensorflow_results

from oplet import TensorType
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec

Arrays = Sequence[NDArray[Any]]


class Case(NamedTuple):
    """One node.

    Attributes:
        op: TensorFlow's name of the operator.
        inputs: an array for each input.
        attributes: as for `flex_options`.
        outputs: the number of outputs.
    """

    op: str
    inputs: Arrays
    attributes: Mapping[str, Any]
    outputs: int = 1


def oplet_results(case: Case, constants: Sequence[int] = ()) -> list[NDArray[Any]]:
    """The outputs in oplet; inputs whose positions are in `constants` are constants of the model, the others are fed."""
    inputs = [
        Spec(type_of(array), array.shape, data=array if position in constants else None)
        for position, array in enumerate(case.inputs)
    ]
    model = one_op_model(
        f"Flex{case.op}",
        inputs,
        [Spec(TensorType.FLOAT32, [1])] * case.outputs,
        custom_options=flex_options(case.op, case.attributes),
    )
    return run_op(model, *(array for position, array in enumerate(case.inputs) if position not in constants))


def dtype_of(type: TensorType) -> np.dtype[Any]:
    """The numpy dtype of a tensor type."""
    return np.dtype(object) if type == TensorType.STRING else np.dtype(type.name.lower())


def type_of(array: NDArray[Any]) -> Any:
    """The tensor type or dtype of an array; objects are strings."""
    return TensorType.STRING if array.dtype == object else array.dtype


def difference(case: Case) -> float:
    """The largest difference between oplet and TensorFlow, relative where values are above 1; 0.0 where both refuse the node.

    Raises:
        AssertionError: shapes, types, or exact values (integers, strings, NaN) differ, or only one of them refuses.
    """
    import tensorflow as tf

    try:
        expected: Any = tensorflow_results(case.op, case.inputs, case.attributes)
    except (tf.errors.OpError, ValueError) as error:
        expected = str(error)
    try:
        found: Any = oplet_results(case)
    except RuntimeError as error:
        found = str(error)
    shown = f"{case.op} {dict(case.attributes)} {[(a.dtype.name, a.shape) for a in case.inputs]}"
    if isinstance(expected, str) or isinstance(found, str):
        assert type(expected) is type(found), f"{shown}\nTensorFlow: {expected}\noplet: {found}"
        return 0.0
    constant = oplet_results(case, range(len(case.inputs)))
    worst = 0.0
    assert len(expected) == len(found), shown
    for a, b, c in zip(expected, found, constant):
        assert a.shape == b.shape == c.shape, f"{shown}\n{a!r}\n{b!r}"
        assert a.dtype == b.dtype, f"{shown}\n{a!r}\n{b!r}"
        assert b.tobytes() == c.tobytes() or a.dtype == object, f"{shown}: as constants its inputs give something else"
        worst = max(worst, _distance(a, b, shown))
    return worst


def _distance(expected: NDArray[Any], found: NDArray[Any], shown: str) -> float:
    if expected.dtype == object or expected.dtype.kind in "iub":
        assert (expected == found).all(), f"{shown}\n{expected!r}\n{found!r}"
        return 0.0
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    a, b = expected.astype(wide), found.astype(wide)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    assert (np.isfinite(a) & np.isfinite(b) | same).all(), f"{shown}\n{expected!r}\n{found!r}"
    with np.errstate(all="ignore"):
        apart = np.where(same, 0.0, np.abs(a - b) / np.maximum(1.0, np.abs(a)))
    return float(apart.max(initial=0.0))
