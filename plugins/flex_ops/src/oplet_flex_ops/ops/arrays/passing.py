"""Ops that pass values on: Identity and similar ops, Bitcast, the checks CheckNumerics and Assert; Print and PrintV2 log.

Numerics: tensorflow/core/kernels/{identity_op.h,bitcast_op.cc,check_numerics_op.cc,logging_ops.cc}
"""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from oplet import Node, Registration, ensure
from oplet.kernels.arrays import Array, Shape, Thunk
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.kernel import shaped, viewed
from oplet_flex_ops.signature import FLOATS, NUMBERS

_logger = logging.getLogger(__name__)


def _same_shapes(node: Node, given: Any) -> list[Shape]:
    return [tensor.shape for tensor in node.inputs]


def _passing(op: str, text: str = "input: T -> output: T") -> Registration:
    return viewed(op, text, _same_shapes)(lambda node, given: [tensor.data for tensor in node.inputs])


IDENTITY = _passing("Identity")
IDENTITYN = _passing("IdentityN", "input: *T -> output: *T")
SNAPSHOT = _passing("Snapshot")
STOPGRADIENT = _passing("StopGradient")
PREVENTGRADIENT = _passing("PreventGradient")
GUARANTEECONST = _passing("GuaranteeConst")
DEEPCOPY = _passing("DeepCopy", "x: T -> y: T")


def _default_shape(node: Node, wanted: Shape | None) -> list[Shape]:
    shape = node.inputs[0].shape
    ensure(
        wanted is None or (len(wanted) == len(shape) and all(a in (-1, b) for a, b in zip(wanted, shape))),
        f"{node.inputs[0]} is not of the shape {wanted} of the placeholder.",
    )
    return [shape]


PLACEHOLDERWITHDEFAULT = viewed(
    "PlaceholderWithDefault", "input: dtype -> output: dtype", _default_shape, lambda attributes: attributes.shape("shape")
)(lambda node, given: [node.inputs[0].data])


def _bitcast_shapes(node: Node, given: Any) -> list[Shape]:
    source, output = node.inputs[0], node.outputs[0]
    old, new, shape = source.dtype.itemsize, output.dtype.itemsize, source.shape
    if old == new:
        return [shape]
    if old > new:
        return [(*shape, old // new)]
    ensure(
        bool(shape) and shape[-1] == new // old, f"{source} must end with an axis of {new // old} to become {output.type.name}."
    )
    return [shape[:-1]]


@viewed("Bitcast", "input: T -> output: type", _bitcast_shapes, T=NUMBERS, type=NUMBERS)
def BITCAST(node: Node, given: Any) -> list[Array]:
    source, output = np.ascontiguousarray(node.inputs[0].data), node.outputs[0]
    return [source.reshape(-1).view(output.dtype).reshape(output.shape)]


def _checking(op: str, signed: bool) -> Registration:
    """Build CheckNumerics, which raises for NaN and infinities; `signed` distinguishes -Inf and +Inf in messages."""

    def bind(node: Node, message: str) -> Thunk:
        source, output = node.inputs[0].data, node.outputs[0].data
        finite = np.empty(source.shape, np.bool_)

        def run() -> None:
            np.isfinite(source, finite)
            if not finite.all():
                ensure(False, f"{message} : Tensor had {_found(source, signed)} values.")
            output[...] = source

        return run

    return shaped(op, "tensor: T -> output: T", _same_shapes, lambda attributes: attributes.text("message"), T=FLOATS)(bind)


def _found(source: Array, signed: bool) -> str:
    infinite = [name for name, there in (("-Inf", (source < 0)), ("+Inf", (source > 0))) if (there & np.isinf(source)).any()]
    names = (infinite if signed else ["Inf"]) if infinite else []
    return ", ".join([*names, *(["NaN"] if np.isnan(source).any() else [])])


CHECKNUMERICS = _checking("CheckNumerics", False)
CHECKNUMERICSV2 = _checking("CheckNumericsV2", True)


@shaped(
    "Assert",
    "condition: BOOL[0], data: *T -> ",
    lambda node, given: [],
    lambda attributes: attributes.integer("summarize", default=3),
    pure=False,
)
def ASSERT(node: Node, summarize: int) -> Thunk:
    condition, data = node.inputs[0].data, [tensor.data for tensor in node.inputs[1:]]

    def run() -> None:
        if not condition.all():
            ensure(False, f"assertion failed: {' '.join(_shown(array, summarize) for array in data)}")

    return run


def _shown(array: Array, summarize: int) -> str:
    count = array.size if summarize < 0 else min(summarize, array.size)
    values = [each.decode("utf-8", "replace") if isinstance(each, bytes) else str(each) for each in array.ravel()[:count]]
    return f"[{' '.join(values)}{'...' if count < array.size else ''}]"


NOOP = shaped("NoOp", " -> ", lambda node, given: [], pure=False)(lambda node, given: lambda: None)

_LEVELS = {"log(warning)": logging.WARNING, "log(error)": logging.ERROR}


def _print_v2_settings(attributes: Attributes) -> int:
    return _LEVELS.get(attributes.text("output_stream", default="stderr"), logging.INFO)


@shaped("PrintV2", "input: STRING[0] -> ", lambda node, given: [], _print_v2_settings, pure=False)
def PRINTV2(node: Node, level: int) -> Thunk:
    text = node.inputs[0].data
    return lambda: _logger.log(level, "%s", text.item().decode("utf-8", "replace"))


def _print_settings(attributes: Attributes) -> tuple[str, int, int]:
    return (
        attributes.text("message", default=""),
        attributes.integer("first_n", default=-1),
        attributes.integer("summarize", default=3),
    )


@shaped("Print", "input: T, data: *U -> output: T", lambda node, given: [node.inputs[0].shape], _print_settings, pure=False)
def PRINT(node: Node, given: tuple[str, int, int]) -> Thunk:
    (message, first, summarize), output = given, node.outputs[0].data
    source, data = node.inputs[0].data, [tensor.data for tensor in node.inputs[1:]]
    left = [first]

    def run() -> None:
        if left[0]:
            left[0] -= 1
            _logger.info("%s%s", message, "".join(_shown(array, summarize) for array in data))
        output[...] = source

    return run
