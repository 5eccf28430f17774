"""SELECT_V2: one of two values by a broadcast bool condition."""

from __future__ import annotations

from oplet_openvino_delegate.selecting import selection

TRANSLATOR = selection()
