"""SELECT: one of two values by a bool condition, which may have one value per row."""

from __future__ import annotations

from oplet_openvino_delegate.selecting import selection

TRANSLATOR = selection(by_row=True)
