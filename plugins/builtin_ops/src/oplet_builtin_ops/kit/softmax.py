"""What SOFTMAX and LOG_SOFTMAX of 8-bit numbers prepare."""

from __future__ import annotations

from oplet_builtin_ops.arithmetic.quantized_softmax import LogSoftmax8, Softmax8

__all__ = ["LogSoftmax8", "Softmax8"]
