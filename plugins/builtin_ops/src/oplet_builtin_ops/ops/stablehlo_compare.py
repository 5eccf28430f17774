"""STABLEHLO_COMPARE: whether a relation holds between two values.

In the total order of floats, -0 is below 0, and NaNs are beyond the infinity of their sign.
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.operands import ensure_operands, ensure_same_shape, ensure_same_type
from oplet.schema.enums import StablehloComparisonType
from oplet.schema.stablehlo_options import StablehloCompareOptions
from oplet_builtin_ops.elementwise.stablehlo_elementwise import quietly
from oplet_builtin_ops.stablehlo import COMPLEX, FLOATS, VALUES, ensure_values

_RELATIONS = {"EQ": np.equal, "NE": np.not_equal, "GE": np.greater_equal, "GT": np.greater, "LE": np.less_equal, "LT": np.less}


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2)
    a, b = node.inputs
    ensure_values(a)
    ensure_same_type(a, b)
    ensure_same_shape(a, b)
    ensure_type(node.outputs[0], TensorType.BOOL)
    options = node.options(StablehloCompareOptions)
    relation = options.comparison_direction.name.rpartition("_")[2]
    ensure(a.type not in COMPLEX or relation in ("EQ", "NE"), f"complex values have no order: {relation} of {a}.")
    total = options.compare_type == StablehloComparisonType.STABLEHLO_COMPARISON_TYPE_FLOAT_TOTAL_ORDER
    ensure(not total or a.type in FLOATS, f"the total order is one of floats, and {a} holds none.")
    node.prepared = _RELATIONS[relation], total
    context.resize_tensor(node.outputs[0], a.shape)


def _ranks(values: Array) -> Array:
    """Map floats to integers that sort in IEEE 754 total order."""
    bits = values.view(f"i{values.itemsize}")
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)


def bind(context: Context, node: Node) -> Thunk:
    relation, total = node.prepared
    a, b, output = node.inputs[0].data, node.inputs[1].data, node.outputs[0].data
    if not total:
        return quietly(relation, a, b, output)

    def run() -> None:
        relation(_ranks(a), _ranks(b), output)

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=VALUES)
