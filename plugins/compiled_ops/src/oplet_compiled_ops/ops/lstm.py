"""LSTM, compiled: float activations, weights of float32 or int8, small batches."""

from __future__ import annotations

from oplet_builtin_ops.ops.lstm import REGISTRATION as BUILTIN
from oplet_compiled_ops.overriding import override
from oplet_compiled_ops.recurrent.cells import FLOATS
from oplet_compiled_ops.recurrent.lstm import plan_lstm

REGISTRATION = override(BUILTIN, plan_lstm, FLOATS)
