"""`FloatLstm`, the plan that LSTM and UNIDIRECTIONAL_SEQUENCE_LSTM prepare for floats."""

from __future__ import annotations

from oplet_builtin_ops.recurrent.lstm_float import FloatLstm

__all__ = ["FloatLstm"]
