"""PAD: a border of zeros (of the zero point, if quantized) around a tensor. Numerics: tflite/kernels/pad.cc"""

from __future__ import annotations

from oplet import Registration
from oplet_builtin_ops.shaping.padding import PADDED_TYPES, bind_pad, prepare_pad

REGISTRATION = Registration(prepare=prepare_pad, bind=bind_pad, pure=True, types=PADDED_TYPES)
