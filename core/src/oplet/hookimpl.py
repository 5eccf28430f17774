"""The decorator `hookimpl`, which marks the functions that implement a plugin's hooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

__all__ = ["hookimpl"]

Function = TypeVar("Function", bound=Callable[..., Any])


@overload
def hookimpl(function: Function) -> Function: ...
@overload
def hookimpl(function: None = None, **options: Any) -> Callable[[Function], Function]: ...
def hookimpl(function: Any = None, **options: Any) -> Any:
    """Mark a function as the implementation of the hook of its name. The mark is that of `pluggy.HookimplMarker("oplet")`, which
    may be used as well, but pluggy is not imported here, as a process may run a model without calling any hook.

    Args:
        function: the function.
        options: pluggy's: `optionalhook`, `specname`, `tryfirst`, `trylast`, `wrapper`.
    """

    def marked(function: Any) -> Any:
        function.oplet_impl = options
        return function

    return marked if function is None else marked(function)
