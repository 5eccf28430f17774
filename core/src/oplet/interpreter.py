"""The names of `ai_edge_litert.interpreter` and `tflite_runtime.interpreter`: a program changes the module's name, and no more.

Example:
    >>> from oplet.interpreter import Interpreter, load_delegate  # in place of ai_edge_litert.interpreter
"""

from __future__ import annotations

from oplet.delegates.delegate import Delegate
from oplet.runtime.custom_ops import InterpreterWithCustomOps
from oplet.runtime.delegation.load import load_delegate
from oplet.runtime.interpreter import Interpreter, OpResolverType, SignatureRunner

__all__ = ["Delegate", "Interpreter", "InterpreterWithCustomOps", "OpResolverType", "SignatureRunner", "load_delegate"]
