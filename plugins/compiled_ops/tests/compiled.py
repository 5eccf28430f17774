"""Which nodes compiled kernels serve."""

from __future__ import annotations

from oplet import Interpreter

__all__ = ["compiled", "is_compiled"]


def compiled(interpreter: Interpreter) -> int:
    """How many nodes compiled kernels serve, of an interpreter that is allocated."""
    prepared = [node.prepared for node in interpreter._subgraphs[0].nodes]
    return sum(callable(each) and each.__module__.startswith("oplet_compiled_ops.") for each in prepared)


def is_compiled(model: bytes) -> bool:
    """Whether compiled kernels serve all nodes."""
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    return compiled(interpreter) == len(interpreter._subgraphs[0].nodes)
