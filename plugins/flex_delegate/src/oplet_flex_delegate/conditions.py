"""What ends the process in TensorFlow's kernels though its shape functions let it pass: a condition for each such operator.

Found by `python -m plugins.flex_delegate.tests.sweep` with TensorFlow 2.21.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = ["CONDITIONS"]

Condition = Callable[[Mapping[str, Any], Sequence[Any]], str]

#: By operator, a function of the attributes and inputs that says what is wrong with them; "" if nothing is.
CONDITIONS: dict[str, Condition] = {}
