"""SPACE_TO_BATCH_ND: moves pixels at distances of a block to batches.

Numerics: tflite/kernels/internal/reference/space_to_batch_nd.h
"""

from __future__ import annotations

from oplet import Registration
from oplet.kernels.operands import PLAIN_TYPES
from oplet_builtin_ops.shaping.batch_blocks import bind_space_to_batch, prepare_space_to_batch

REGISTRATION = Registration(
    prepare=prepare_space_to_batch,
    bind=bind_space_to_batch,
    pure=True,
    types=PLAIN_TYPES,
    differences="refuses negative paddings",
)
