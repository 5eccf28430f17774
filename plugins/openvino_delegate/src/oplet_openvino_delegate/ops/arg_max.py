"""ARG_MAX: where the largest value is along one dimension, the first of several."""

from __future__ import annotations

from oplet_openvino_delegate.searching import searching

TRANSLATOR = searching("max")
