"""The names of `ai_edge_litert.interpreter` and `tflite_runtime.interpreter`, so that a program only changes the module's name.

Examples:
    >>> from oplet.interpreter import Interpreter, load_delegate  # in place of ai_edge_litert.interpreter
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from oplet.delegates.delegate import Delegate
from oplet.errors import ModelError
from oplet.ops.serving.resolver import ChainOpResolver, MutableOpResolver
from oplet.runtime.delegation.load import load_delegate
from oplet.runtime.interpreter import Interpreter, OpResolverType
from oplet.runtime.signature_runner import SignatureRunner

__all__ = ["Delegate", "Interpreter", "InterpreterWithCustomOps", "OpResolverType", "SignatureRunner", "load_delegate"]


class InterpreterWithCustomOps(Interpreter):
    """An interpreter with custom ops of the application, as LiteRT's class of this name.

    Args:
        custom_op_registerers: functions that take a `MutableOpResolver` and add registrations to it.
        arguments: the arguments of `Interpreter`; registrations of its `op_resolver` come after these in precedence.

    Raises:
        ModelError: a registerer is the name of a C++ symbol, or no function (a ValueError, as LiteRT raises).
    """

    def __init__(
        self, custom_op_registerers: Iterable[Callable[[MutableOpResolver], None]] | None = None, **arguments: Any
    ) -> None:
        own = MutableOpResolver()
        for register in custom_op_registerers or ():
            if isinstance(register, str):
                raise ModelError(
                    f"Looking up symbol '{register}' failed: custom_op_registerers takes functions of a MutableOpResolver in oplet, "
                    "not names of C++ symbols; operators of a library that is made for LiteRT's C API come with oplet_native_ops.load_ops."
                )
            if not callable(register):
                raise ModelError(f"custom_op_registerers has {register!r}, which is no function of a MutableOpResolver.")
            register(own)
        given = arguments.pop("op_resolver", None)
        super().__init__(op_resolver=own if given is None else ChainOpResolver([own, given]), **arguments)
