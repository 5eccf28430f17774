"""UNIDIRECTIONAL_SEQUENCE_RNN, compiled: float activations, weights of float32 or int8, small batches."""

from __future__ import annotations

from oplet_builtin_ops.ops.unidirectional_sequence_rnn import REGISTRATION as BUILTIN
from oplet_compiled_ops.overriding import override
from oplet_compiled_ops.recurrent.cells import FLOATS
from oplet_compiled_ops.recurrent.rnn import plan_rnn

REGISTRATION = override(BUILTIN, plan_rnn, FLOATS)
