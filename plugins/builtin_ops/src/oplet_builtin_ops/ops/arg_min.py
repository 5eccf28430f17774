"""ARG_MIN: the position along an axis of the smallest value. Numerics: tflite/kernels/arg_min_max.cc"""

from __future__ import annotations

from oplet import Context, Node, Registration
from oplet.schema.options import ArgMinOptions
from oplet_builtin_ops.shaping.arg_min_max import TYPES, bind_arg_min, prepare_arg


def prepare(context: Context, node: Node) -> None:
    prepare_arg(context, node, ArgMinOptions)


REGISTRATION = Registration(prepare=prepare, bind=bind_arg_min, pure=True, types=TYPES)
