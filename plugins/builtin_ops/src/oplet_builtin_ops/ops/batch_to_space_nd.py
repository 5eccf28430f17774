"""BATCH_TO_SPACE_ND: moves batches to pixels at distances of a block; the inverse of SPACE_TO_BATCH_ND.

Numerics: tflite/kernels/internal/reference/batch_to_space_nd.h
"""

from __future__ import annotations

from oplet import Registration
from oplet.kernels.operands import PLAIN_TYPES
from oplet_builtin_ops.shaping.batch_blocks import bind_batch_to_space, prepare_batch_to_space

REGISTRATION = Registration(prepare=prepare_batch_to_space, bind=bind_batch_to_space, pure=True, types=PLAIN_TYPES)
