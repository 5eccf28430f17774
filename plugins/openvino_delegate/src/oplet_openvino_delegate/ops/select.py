"""SELECT: of two values the one that a bool chooses; the bool may have one value for each row."""

from __future__ import annotations

from oplet_openvino_delegate.selecting import selection

TRANSLATOR = selection(by_row=True)
