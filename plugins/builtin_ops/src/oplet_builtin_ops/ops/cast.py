"""CAST: values as another type. Floats are truncated and clamped to the range of an integer type; NaN becomes its largest number.

Numerics: tflite/kernels/cast.cc
"""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk, copier
from oplet.kernels.operands import ensure_operands
from oplet_builtin_ops.arithmetic.half import narrow_to_half, widen_half
from oplet_builtin_ops.arithmetic.lookup import lookup
from oplet_builtin_ops.types import NUMBERS

#: The types that are cast to one another.
TYPES: Final = tuple(type for type in NUMBERS if type != TensorType.UINT64)
SHORT_FLOATS: Final = (TensorType.FLOAT16, TensorType.BFLOAT16)
FLOATS: Final = (TensorType.FLOAT32, TensorType.FLOAT64, TensorType.COMPLEX64, *SHORT_FLOATS)
OCTETS: Final = (TensorType.INT8, TensorType.UINT8, TensorType.BOOL)
#: The types that are only cast from and to FLOAT32, with their bounds.
PACKED: Final = {TensorType.INT4: (-8, 7), TensorType.INT2: (-2, 1), TensorType.UINT4: (0, 15)}


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1)
    source, output = node.inputs[0], node.outputs[0]
    ensure_type(source, *TYPES, *PACKED)
    ensure_type(output, *TYPES, *PACKED)
    for packed, other in ((source, output), (output, source)):
        fits = packed.type not in PACKED or other.type == TensorType.FLOAT32
        ensure(fits, f"{source} cannot become {output.type.name}: {packed.type.name} is cast from and to FLOAT32 only.")
    context.resize_tensor(output, source.shape)
    if _is_cut_off(source.type, output.type):
        context.add_temporary(node, source.shape, TensorType.FLOAT64 if source.type == TensorType.FLOAT64 else TensorType.FLOAT32)
    elif source.type == TensorType.FLOAT64 and output.type in SHORT_FLOATS:
        context.add_temporary(node, source.shape, TensorType.FLOAT32)


def _is_cut_off(source: TensorType, target: TensorType) -> bool:
    return source in FLOATS and target not in FLOATS and target != TensorType.BOOL


def bind(context: Context, node: Node) -> Thunk:
    source, output = node.inputs[0].data, node.outputs[0].data
    given, wanted = node.inputs[0].type, node.outputs[0].type
    if given == TensorType.COMPLEX64 != wanted:
        source = source.real
    if wanted == TensorType.BOOL:
        zero = np.zeros((), source.dtype)

        def compare() -> None:
            np.not_equal(source, zero, output)

        return compare
    if given == TensorType.FLOAT16 and wanted == TensorType.FLOAT32:
        return partial(widen_half, source, output)
    if given == TensorType.FLOAT32 and wanted == TensorType.FLOAT16:
        return partial(narrow_to_half, source, output)
    if given in OCTETS and wanted == TensorType.FLOAT16:
        # numpy converts halves one by one.
        values: Array = np.arange(256, dtype=np.uint8)
        values = values != 0 if given == TensorType.BOOL else values.view(source.dtype)
        return lookup(values.astype(output.dtype), source, output)
    if not node.temporaries:
        return copier(output, source)
    work = node.temporaries[0].data
    if _is_cut_off(given, wanted):
        return _bind_cut_off(source, work, output, PACKED.get(wanted))

    def run() -> None:
        # Rounded twice: LiteRT goes through single precision.
        work[...] = source
        output[...] = work

    return run


def _bind_cut_off(source: Array, work: Array, output: Array, bounds: tuple[int, int] | None) -> Thunk:
    info = np.iinfo(output.dtype)
    low, high = bounds or (int(info.min), int(info.max))
    lowest, highest = np.array(low, work.dtype), np.array(high, work.dtype)
    rounded = int(highest) > high
    limit = highest.copy()
    if rounded:
        # The type's largest number is not a float; the largest float below it is, and values beyond it are set afterwards.
        highest = np.nextafter(highest, np.zeros_like(highest))

    def run() -> None:
        work[...] = source
        np.fmin(work, highest, out=work)
        np.maximum(work, lowest, out=work)
        np.copyto(output, work, "unsafe")
        if rounded:
            fits = np.less(source, limit)
            if not fits.all():
                np.copyto(output, high, where=~fits)

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(*TYPES, *PACKED))
