"""Every exception that oplet raises.

Each class also derives from the one that LiteRT raises in the same place, so that code written for
`ai_edge_litert.interpreter` keeps catching what it caught. A message is one sentence that names what is wrong, where
(model, node, op, tensor), and what to do next.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "FAILURES",
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
]


#: What the code of packages is expected to raise: a plugin that calls sys.exit must not end the program. Exceptions that
#: are the program's own pass through: KeyboardInterrupt, and whatever its signal handlers or test runners derive from
#: BaseException.
FAILURES: Final = (Exception, SystemExit)


class OpletError(Exception):
    """Base of all errors of this package."""


class ModelError(OpletError, ValueError):
    """The model file is missing, damaged, or breaks a rule of the format."""


class OpNotFoundError(ModelError):
    """A built-in operator of the model has no kernel in any installed package.

    Attributes:
        op: the operator's name.
        version: the version that the model asks for.
    """

    def __init__(self, message: str, op: str = "", version: int = 0) -> None:
        super().__init__(message)
        self.op = op
        self.version = version


class OpVersionError(OpNotFoundError):
    """The operator is there, but not in the version that the model asks for."""


class OpConflictError(ModelError):
    """Two packages claim the same operator and version, and nothing says which to take."""


class ResolverError(OpletError, ValueError):
    """A registration is given to a resolver that makes no sense: no such op, an empty range of versions, no name."""


class PluginError(OpletError, RuntimeError):
    """A plugin cannot be loaded, or does something that its contract forbids."""


class UnresolvedOpError(OpletError, RuntimeError):
    """Custom operators of the model have no kernel in any installed package.

    Attributes:
        ops: the names of the operators.
    """

    def __init__(self, message: str, ops: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.ops = ops


class PrepareError(OpletError, RuntimeError):
    """A kernel refused its node: a shape, type or option it cannot work with."""


class CustomOptionsError(PrepareError):
    """The custom options of a node are not what the kernel can read."""


class InvokeError(OpletError, RuntimeError):
    """A kernel failed while running, because of the values it was given."""


class LimitError(OpletError, RuntimeError):
    """The model asks for more memory or work than is allowed."""


class DeadlineError(LimitError):
    """A run took longer than is allowed; the interpreter stays usable."""


class CancelledError(OpletError, RuntimeError):
    """Another thread asked for the end of a run; the interpreter stays usable."""


class StateError(OpletError, RuntimeError):
    """A method was called before the one it needs (`invoke` before `allocate_tensors`)."""


class ViewError(StateError):
    """A numpy view of a tensor is still alive where the memory behind it may move."""


class ImmutableGraphError(StateError):
    """The graph cannot be changed any more."""


class TensorError(OpletError, ValueError):
    """A tensor index, or a value given for a tensor, does not fit the model."""


class SignatureError(OpletError, ValueError):
    """A signature key, or an input given to a signature, does not exist."""


class DelegateError(OpletError, RuntimeError):
    """A delegate failed to apply; the graph is as the model has it, without delegates."""


class DelegateApplicationError(DelegateError):
    """A delegate does not suit the graph, or the delegates that were applied before it; the graph is usable."""


class DelegateLoadError(DelegateError, ValueError):
    """No package brings a delegate of that name, more than one does, or it refuses its options."""
