"""RNN and UNIDIRECTIONAL_SEQUENCE_RNN, compiled: float activations, weights of float32 or int8, small batches."""

from __future__ import annotations

from oplet_builtin_ops.recurrent import rnn as builtin
from oplet_compiled_ops.overriding import override
from oplet_compiled_ops.recurrent.cells import FLOATS
from oplet_compiled_ops.recurrent.rnn import plan_rnn

RNN = override(builtin.RNN, plan_rnn, FLOATS)
UNIDIRECTIONAL_SEQUENCE_RNN = override(builtin.UNIDIRECTIONAL_SEQUENCE_RNN, plan_rnn, FLOATS)
