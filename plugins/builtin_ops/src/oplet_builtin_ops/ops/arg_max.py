"""ARG_MAX: the position along an axis of the largest value. Numerics: tflite/kernels/arg_min_max.cc"""

from __future__ import annotations

from oplet import Context, Node, Registration
from oplet.schema.options import ArgMaxOptions
from oplet_builtin_ops.shaping.arg_min_max import TYPES, bind_arg_max, prepare_arg


def prepare(context: Context, node: Node) -> None:
    prepare_arg(context, node, ArgMaxOptions)


REGISTRATION = Registration(prepare=prepare, bind=bind_arg_max, pure=True, types=TYPES)
