"""What float LSTM and UNIDIRECTIONAL_SEQUENCE_LSTM prepare."""

from __future__ import annotations

from oplet_builtin_ops.recurrent.lstm_float import FloatLstm

__all__ = ["FloatLstm"]
