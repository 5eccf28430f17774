"""Every exception that oplet raises.

Each class also derives from the one that LiteRT raises in the same place, so that `except` clauses written for
`ai_edge_litert.interpreter` keep working. A message is one sentence that names what is wrong, where (model, node, op, tensor), and
what to do next. Messages, their `repr` and their form in tracebacks are sanitized (`oplet.texts.plain`): one printable line of a
readable length, whatever names they contain.
"""

from __future__ import annotations

import sys
from types import CodeType

from oplet.texts import LONGEST, one_line, plain

__all__ = [
    "CancelledError",
    "CustomOptionsError",
    "DeadlineError",
    "DelegateApplicationError",
    "DelegateError",
    "DelegateLoadError",
    "ImmutableGraphError",
    "InvokeError",
    "LimitError",
    "ModelError",
    "OpConflictError",
    "OpNotFoundError",
    "OpVersionError",
    "OpletError",
    "PluginError",
    "PrepareError",
    "ResolverError",
    "SignatureError",
    "StateError",
    "TensorError",
    "UnresolvedOpError",
    "ViewError",
    "failures",
    "text_of",
]


#: The most characters of another package's exception in a message.
_LONGEST_REASON = 1600


def failures() -> tuple[type[BaseException], ...]:
    """Return the classes to catch around code of other packages: `except failures() as error:`.

    They include exceptions that are no `Exception`: `sys.exit` in a plugin, a panic of a Rust extension or `pytest.exit` must not end
    the program that runs a model. Two kinds of exceptions belong to the program and are not caught: `KeyboardInterrupt` itself (not
    classes derived from it), and exceptions that a signal handler of the program raises meanwhile.

    Returns:
        `(BaseException,)` where the exception being raised is a failure of the code, `()` where it belongs to the program.
    """
    error = sys.exc_info()[1]
    return () if error is None or _is_of_the_program(error) else (BaseException,)


def _is_of_the_program(error: BaseException) -> bool:
    if type(error) is KeyboardInterrupt:
        return True
    if sys.is_finalizing():  # no handler runs any more, and nothing can be imported
        return False
    import signal

    handlers: set[CodeType] | None = None
    traceback = error.__traceback__
    while traceback is not None:
        if handlers is None:
            handlers = {code for number in signal.valid_signals() if (code := _code(signal.getsignal(number)))}
        if traceback.tb_frame.f_code in handlers:
            return True
        traceback = traceback.tb_next
    return False


def _code(handler: object) -> CodeType | None:
    """Return the code object of a signal handler that is a Python function, method or callable object; None for any other."""
    if isinstance(handler, int) or not callable(handler):
        return None
    for function in (handler, getattr(handler, "__func__", None), type(handler).__call__):
        if isinstance(code := getattr(function, "__code__", None), CodeType):
            return code
    return None


def text_of(error: object, *, named: bool = False) -> str:
    """Return the message of any exception in one printable line; the name of its class if it has no message or its `__str__`
    raises.

    Args:
        error: an exception; its `__str__` may raise, return something else than a string, or return megabytes.
        named: whether to put the name of its class first; not done for oplet's own errors.

    Examples:
        >>> text_of(KeyError("x")), text_of(KeyError("x"), named=True), text_of(ValueError())
        ("'x'", "KeyError: 'x'", 'ValueError')
    """
    name = plain(type(error).__name__, 100)
    try:
        text = one_line(str(error), _LONGEST_REASON)
    except failures() as failure:
        return f"{name} (which cannot say more: its __str__ raises {plain(type(failure).__name__, 100)})"
    if not text:
        return name
    return f"{name}: {text}" if named and not isinstance(error, OpletError) else text


class OpletError(Exception):
    """Base of all errors of this package.

    Args:
        args: the message. It may contain untrusted names: unprintable characters are escaped, and beyond 8000 characters its
            middle is left out.

    Attributes:
        node: the index, the op and the version of the node that it is about; None if it is about no node. Where a node calls a
            subgraph, the error of the node inside is its cause (`__cause__`).
    """

    node: tuple[int, str, int] | None = None

    def __init__(self, *args: object) -> None:
        super().__init__(*(plain(arg, LONGEST) if isinstance(arg, str) else arg for arg in args))

    def __str__(self) -> str:
        """Return the message in printable form, also where `args` were changed or a subclass bypassed the constructor."""
        if len(self.args) == 1 and isinstance(self.args[0], str):
            return plain(self.args[0], LONGEST)
        return text_of(self.args[0] if len(self.args) == 1 else f"({', '.join(map(_listed, self.args))})") if self.args else ""

    def __repr__(self) -> str:
        return f"{plain(type(self).__name__, 100)}({', '.join(_listed(arg) for arg in self.args)})"


def _listed(arg: object) -> str:
    if isinstance(arg, str):
        return repr(plain(arg, LONGEST))
    try:
        return plain(repr(arg), LONGEST)
    except failures():
        return f"<{plain(type(arg).__name__, 100)}>"


class ModelError(OpletError, ValueError):
    """The model file is missing, damaged, or breaks a rule of the format."""


class OpNotFoundError(ModelError):
    """A built-in operator of the model has no kernel in any installed package.

    Attributes:
        op: the operator's name.
        version: the version that the model requires.
    """

    def __init__(self, message: str, op: str = "", version: int = 0) -> None:
        super().__init__(message)
        self.op = op
        self.version = version


class OpVersionError(OpNotFoundError):
    """The operator has kernels, but not in the version that the model requires."""


class OpConflictError(ModelError):
    """Several packages serve the same operator and version, and no preference decides."""


class ResolverError(OpletError, ValueError):
    """A resolver was given an invalid registration: no such op, an empty range of versions, no name."""


class PluginError(OpletError, RuntimeError):
    """A plugin cannot be loaded, or breaks its contract."""


class UnresolvedOpError(OpletError, RuntimeError):
    """Custom operators of the model have no kernel in any installed package.

    Attributes:
        ops: the names of the operators.
    """

    def __init__(self, message: str, ops: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.ops = ops


class PrepareError(OpletError, RuntimeError):
    """A kernel refused its node for a shape, type or option that it does not support."""


class UnservedNodeError(PrepareError):
    """A node of an op that has kernels is declined by all of them, as none supports its types or shapes.

    Attributes:
        op: the op's name.
    """

    def __init__(self, message: str, op: str = "") -> None:
        super().__init__(message)
        self.op = op


class CustomOptionsError(PrepareError):
    """The custom options of a node are not in the form that its kernel reads."""


class InvokeError(OpletError, RuntimeError):
    """A kernel failed at run time because of the values of its inputs."""


class LimitError(OpletError, RuntimeError):
    """The model needs more memory or work than is allowed."""


class DeadlineError(LimitError):
    """A run took longer than is allowed; the interpreter stays usable."""


class CancelledError(OpletError, RuntimeError):
    """Another thread cancelled a run; the interpreter stays usable."""


class StateError(OpletError, RuntimeError):
    """A method was called before the one it needs (`invoke` before `allocate_tensors`)."""


class ViewError(StateError):
    """A numpy view of a tensor is still alive where the memory behind it may move."""


class ImmutableGraphError(StateError):
    """The graph can no longer be changed."""


class TensorError(OpletError, ValueError):
    """A tensor index, or a value given for a tensor, does not fit the model."""


class SignatureError(OpletError, ValueError):
    """A signature key, or an input given to a signature, does not exist."""


class DelegateError(OpletError, RuntimeError):
    """A delegate failed to apply; the graph is restored to the model's, without delegates."""


class DelegateApplicationError(DelegateError):
    """A delegate is incompatible with the graph or with delegates applied earlier; the graph stays usable."""


class DelegateLoadError(DelegateError, ValueError):
    """No package has a delegate of that name, several have one, or the delegate refuses its options."""
