"""GELU, exact or by tanh. Numerics: tflite/kernels/activations.cc (GeluPrepare, GeluEval), internal/reference/gelu.h"""

from __future__ import annotations

from oplet import Context, Node, Registration, TensorType
from oplet.kernels.arrays import Thunk
from oplet.schema.options import GeluOptions
from oplet_builtin_ops.arithmetic.gaussian import bind_gelu, bind_gelu_approximate, gelu, gelu_approximate, half_table
from oplet_builtin_ops.elementwise.elementwise import bind_table, function_table, prepare_elementwise

TYPES = (TensorType.FLOAT32, TensorType.FLOAT16, TensorType.INT8, TensorType.UINT8, TensorType.INT16)


def prepare(context: Context, node: Node) -> None:
    source, output = prepare_elementwise(context, node, *TYPES)
    approximate = node.options(GeluOptions).approximate
    if source.type == TensorType.FLOAT16:
        node.prepared = half_table(approximate)
    elif source.type != TensorType.FLOAT32:
        function = gelu_approximate if approximate else gelu
        node.prepared = node.cached(("table", source.type, output.type), (), lambda: function_table(source, output, function))


def bind(context: Context, node: Node) -> Thunk:
    if node.inputs[0].type != TensorType.FLOAT32:
        return bind_table(node)
    source, output = node.inputs[0].data, node.outputs[0].data
    return (bind_gelu_approximate if node.options(GeluOptions).approximate else bind_gelu)(source, output)


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=TYPES)
