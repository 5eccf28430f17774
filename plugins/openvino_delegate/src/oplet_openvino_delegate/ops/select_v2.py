"""SELECT_V2: of two values the one that a bool chooses."""

from __future__ import annotations

from oplet_openvino_delegate.selecting import selection

TRANSLATOR = selection()
