"""The tables that integer SOFTMAX and LOG_SOFTMAX prepare."""

from __future__ import annotations

from oplet_builtin_ops.arithmetic.quantized_softmax import LogSoftmax8, Softmax8, Softmax16

__all__ = ["LogSoftmax8", "Softmax8", "Softmax16"]
