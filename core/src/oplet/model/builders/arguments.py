"""A decorator that checks arguments by kind, so that a wrong argument is one sentence and not a traceback from within a
builder.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from oplet.errors import ModelError
from oplet.schema.enums import BuiltinOperator
from oplet.schema.table import Table
from oplet.texts import shown

__all__ = [
    "BINARY", "BYTES", "FLAG", "FLAGS", "INDEX", "INDICES", "INDICES_OR_NONE", "NAMES", "OPERATOR", "OPTIONS", "REALS", "SHAPE", "SIZES",
    "TEXT", "VERSION", "WHOLE", "WHOLES", "Kind", "one_of", "takes",
]  # fmt: skip

Function = TypeVar("Function", bound=Callable[..., Any])
_FIRST_VERSION, _LAST_VERSION = 1, 2**31 - 1


class Kind(NamedTuple):
    """A kind of argument."""

    described: str  #: Its description in messages, after "takes".
    fits: Callable[[Any], bool]  #: A function that tells whether a value is of this kind.


def takes(_called: str = "", /, **kinds: Kind) -> Callable[[Function], Function]:
    """Check a function's arguments before it runs: a decorator. Arguments equal to their default are not checked.

    Args:
        _called: the function's name in messages; by default its own.
        kinds: the kinds of the arguments, by name.

    Raises:
        ModelError: by the decorated function, for an argument of another kind; it names the function, the argument and the value.

    Examples:
        >>> @takes(name=TEXT)
        ... def greet(name):
        ...     return f"Hello {name}"
        >>> greet(3)
        Traceback (most recent call last):
        oplet.errors.ModelError: greet takes a text as name, not 3 (int).
    """

    def wrap(function: Function) -> Function:
        called = _called or function.__name__
        parameters = inspect.signature(function).parameters
        positions = {name: position for position, name in enumerate(parameters)}
        checks = [(name, positions[name], kinds[name], parameters[name].default) for name in parameters if name in kinds]
        rest = next((name for name, each in parameters.items() if each.kind is inspect.Parameter.VAR_POSITIONAL), None)

        @functools.wraps(function)
        def checked(*given: Any, **named: Any) -> Any:
            for name, position, kind, default in checks:
                if name == rest:
                    value: Any = given[position:]
                elif position < len(given) and (rest is None or position < positions[rest]):
                    value = given[position]
                elif name in named:
                    value = named[name]
                else:
                    continue
                if value is not default and not kind.fits(value):
                    raise ModelError(f"{called} takes {kind.described} as {name}, not {_described(value)}.")
            return function(*given, **named)

        return checked  # type: ignore[return-value]

    return wrap


def one_of(*classes: type) -> Kind:
    """Return the kind of argument that is an instance of one of these classes."""
    return Kind(
        " or ".join(f"{'an' if each.__name__[0] in 'AEIOU' else 'a'} {each.__name__}" for each in classes),
        lambda value: isinstance(value, classes),
    )


def _described(value: object) -> str:
    try:
        text = shown(repr(value))
    except Exception:  # the repr of any object may raise
        text = "something"
    return f"{text} ({type(value).__name__})"


def _is_whole(value: Any) -> bool:
    if isinstance(value, (bool, np.bool_)):
        return False
    try:
        return -(2**63) <= operator.index(value) < 2**63
    except TypeError:
        return False


def _is_flag(value: Any) -> bool:
    return isinstance(value, (bool, np.bool_)) or (_is_whole(value) and int(value) in (0, 1))


def _is_row(value: Any) -> bool:
    """Return whether a value is a list, tuple, array or another sequence; strings and mappings are not."""
    if isinstance(value, np.ndarray):
        return value.ndim == 1
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray, memoryview))


def _are_numbers(value: Any, kinds: str) -> bool:
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        return False
    return array.ndim <= 1 and (array.dtype.kind in kinds or array.size == 0) and not isinstance(value, (str, bytes, Mapping))


def _is_binary(value: Any) -> bool:
    return isinstance(value, (bytes, bytearray, memoryview)) or (isinstance(value, np.ndarray) and not value.dtype.hasobject)


def _all_whole(values: Iterable[Any]) -> bool:
    return all(map(_is_whole, values))


def _is_operator(value: Any) -> bool:
    if isinstance(value, str):
        return True
    return _is_whole(value) and int(value) in _OPERATORS


_OPERATORS: Final = frozenset(map(int, BuiltinOperator))

TEXT: Final = Kind("a text", lambda value: isinstance(value, str))
FLAG: Final = Kind("True or False", _is_flag)
FLAGS: Final = Kind("a list of True and False", lambda value: _is_row(value) and all(map(FLAG.fits, value)))
WHOLE: Final = Kind("a whole number", _is_whole)
VERSION: Final = Kind(
    "a whole number from 1 on", lambda value: _is_whole(value) and _FIRST_VERSION <= int(value) <= _LAST_VERSION
)
INDEX: Final = Kind("a number that a function of the builder returned", _is_whole)
INDICES: Final = Kind(
    "a list of tensors, by the numbers that add_tensor returned", lambda value: _is_row(value) and _all_whole(value)
)
INDICES_OR_NONE: Final = Kind(
    "a list of tensors, by the numbers that add_tensor returned, None for one that is left out",
    lambda value: _is_row(value) and all(each is None or _is_whole(each) for each in value),
)
SIZES: Final = Kind("a list of whole numbers", lambda value: _is_row(value) and _all_whole(value))
SHAPE: Final = Kind(
    "a list of sizes, None or -1 for one that is free",
    lambda value: value is None or (_is_row(value) and all(each is None or _is_whole(each) for each in value)),
)
REALS: Final = Kind("a number or a list of numbers", lambda value: _are_numbers(value, "iuf"))
WHOLES: Final = Kind("a whole number or a list of them", lambda value: _are_numbers(value, "iu"))
BINARY: Final = Kind("bytes or an array", _is_binary)
BYTES: Final = Kind("bytes", lambda value: isinstance(value, (bytes, bytearray, memoryview)))
OPTIONS: Final = Kind("a table of the format, such as Conv2DOptions(...)", lambda value: isinstance(value, Table))
OPERATOR: Final = Kind("a built-in operator, its name, or a custom op's name", _is_operator)
NAMES: Final = Kind(
    "a mapping from names to tensors, by the numbers that add_tensor returned",
    lambda value: isinstance(value, Mapping) and all(isinstance(name, str) and _is_whole(at) for name, at in value.items()),
)
