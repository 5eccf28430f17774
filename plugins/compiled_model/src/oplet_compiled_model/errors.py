"""The error that a CompiledModel raises, in LiteRT's form."""

from __future__ import annotations

from oplet.errors import OpletError

__all__ = ["FAILURE", "INVALID", "NOT_FOUND", "OUT_OF_BOUNDS", "CompiledModelError"]

#: LiteRT's numbers of errors.
INVALID, FAILURE, NOT_FOUND, OUT_OF_BOUNDS = 1, 3, 6, 1000


class CompiledModelError(OpletError, RuntimeError):
    """Raised when a model cannot be loaded, described or run; it is a RuntimeError, as LiteRT raises.

    Args:
        message: what failed.
        reasons: the causes, each on a line of its own in the message.
        code: LiteRT's status code of the error; None if there is none.

    Attributes:
        code: that status code.
    """

    def __init__(self, message: str, *reasons: str, code: int | None = None) -> None:
        first = message if code is None else f"CompiledModel error: code={code}, message={message}"
        super().__init__(first, *reasons)
        self.code = code

    def __str__(self) -> str:
        return "\n└ ".join(str(OpletError(arg)) for arg in self.args)
