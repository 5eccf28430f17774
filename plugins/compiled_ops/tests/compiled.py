"""Which nodes compiled kernels serve."""

from __future__ import annotations

import pytest

from oplet import Interpreter
from oplet.runtime.memory.remembered import STORE_VARIABLE

__all__ = ["compiled", "is_compiled"]


def compiled(interpreter: Interpreter) -> int:
    """How many nodes compiled kernels serve, of an interpreter that is allocated."""
    prepared = [node.prepared for node in interpreter._subgraphs[0].nodes]
    return sum(callable(each) and each.__module__.startswith("oplet_compiled_ops.") for each in prepared)


def is_compiled(model: bytes) -> bool:
    """Whether compiled kernels serve all nodes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(STORE_VARIABLE, "off")  # a plan from disk, of another process that ran an equal model, prepares no kernel
        interpreter = Interpreter(model_content=model)
        interpreter.allocate_tensors()
    return compiled(interpreter) == len(interpreter._subgraphs[0].nodes)
