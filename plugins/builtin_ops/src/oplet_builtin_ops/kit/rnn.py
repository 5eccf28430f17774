"""`RnnCell`, the plan that RNN and UNIDIRECTIONAL_SEQUENCE_RNN prepare."""

from __future__ import annotations

from oplet_builtin_ops.recurrent.rnn_cell import RnnCell

__all__ = ["RnnCell"]
