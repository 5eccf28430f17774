"""What the recorded cases are run with, in a process of its own."""

from __future__ import annotations

import os
from typing import Any

import oplet


class Interpreter(oplet.Interpreter):
    """oplet's, with the delegate."""

    def __init__(self, **arguments: Any) -> None:
        options = {"quantized": 1} if os.environ.get("OPLET_XLA_QUANTIZED") else {}
        super().__init__(
            experimental_delegates=[oplet.load_delegate("xla", {"device": os.environ.get("OPLET_XLA_DEVICE", "cpu"), **options})],
            **arguments,
        )
