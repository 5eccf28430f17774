"""Records and rows: classes of fields like those of `dataclass` and `NamedTuple`, which are not used where every model waits for them.

They write and compile source for each class, a dataclass a method at a time, which takes up to a millisecond of each start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar

if TYPE_CHECKING:
    from typing import NamedTuple as Row

    from typing_extensions import dataclass_transform
else:
    from _collections import _tuplegetter

    def dataclass_transform(**_: Any) -> Any:
        return lambda cls: cls


__all__ = ["Record", "Row"]

_Self = TypeVar("_Self", bound="Record")


def _unknown(given: Any, fields: tuple[str, ...]) -> str:
    return "".join(f", and there is no {name}" for name in given if name not in fields)


class _DataclassFields:
    """What `dataclasses.replace`, `fields` and `asdict` look for, made when they do."""

    def __get__(self, record: Any, cls: type[Record]) -> dict[str, Any]:
        from dataclasses import field, make_dataclass

        defaults = cls._defaults
        rows: list[Any] = [
            (name, Any, field(default_factory=lambda of=defaults[name]: of)) if name in defaults else (name, Any)  # type: ignore[misc]
            for name in cls.__match_args__
        ]
        return vars(make_dataclass(cls.__name__, rows, kw_only=True))["__dataclass_fields__"]  # type: ignore[no-any-return]


@dataclass_transform(frozen_default=True)
class Record:
    """Base of classes whose annotations are fields, with a frozen dataclass's constructor, equality, hash and repr.

    `record.__replace__(field=value)` returns a copy with other values, as `dataclasses.replace` and `copy.replace` do.

    Examples:
        >>> class Point(Record):
        ...     x: int
        ...     y: int = 0
        >>> Point(1).__replace__(y=2)
        Point(x=1, y=2)
    """

    __match_args__: ClassVar[Any] = ()
    __dataclass_fields__: ClassVar[Any] = _DataclassFields()
    _defaults: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls, frozen: bool = True) -> None:
        own = cls.__annotations__
        if own:
            cls.__match_args__ = (*cls.__match_args__, *own)  # type: ignore[misc]  # a dataclass's is final
            cls._defaults = {**cls._defaults, **{name: vars(cls)[name] for name in own if name in vars(cls)}}
        if not frozen:
            cls.__setattr__ = object.__setattr__  # type: ignore[method-assign]

    def __init__(self, *values: Any, **named: Any) -> None:
        names, state = self.__match_args__, self.__dict__
        if len(values) != len(names) or named:
            state.update(self._defaults, **named)
            placed = names[: len(values)]
            if len(values) > len(names) or {*state, *placed} != {*names} or not named.keys().isdisjoint(placed):
                raise TypeError(f"{type(self).__name__} takes each of {', '.join(names)} once{_unknown(named, names)}.")
        state.update(zip(names, values))
        self.__post_init__()

    def __post_init__(self) -> None:
        """Check or complete the values."""

    def __replace__(self: _Self, **changes: Any) -> _Self:
        return type(self)(**{**{name: getattr(self, name) for name in self.__match_args__}, **changes})

    def _in_order(self) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in self.__match_args__])

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._in_order() == other._in_order()

    def __hash__(self) -> int:
        return hash(self._in_order())

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
        return f"{type(self).__qualname__}({shown})"

    if not TYPE_CHECKING:  # which sees a frozen dataclass

        def __setattr__(self, name: str, value: Any = None) -> NoReturn:
            from dataclasses import FrozenInstanceError

            raise FrozenInstanceError(f"{name} of a {type(self).__name__} does not change; __replace__ makes another one.")

        __delattr__ = __setattr__


if not TYPE_CHECKING:

    class _RowMeta(type):
        def __new__(meta, name, bases, namespace):
            fields = tuple(namespace.get("__annotations__", ()))
            if bases and fields:
                namespace["_field_defaults"] = {field: namespace[field] for field in fields if field in namespace}
                namespace.update({field: _tuplegetter(at, "") for at, field in enumerate(fields)})
                namespace["_fields"] = namespace["__match_args__"] = fields
            return super().__new__(meta, name, bases, {"__slots__": (), **namespace})

    class Row(tuple, metaclass=_RowMeta):
        """Base of tuples with named fields, the class's annotations, as `typing.NamedTuple` makes them.

        Examples:
            >>> class Size(Row):
            ...     rows: int
            ...     columns: int = 1
            >>> Size(2)._replace(columns=3)
            Size(rows=2, columns=3)
        """

        _fields = ()
        _field_defaults: ClassVar = {}

        def __new__(cls, *values, **named):
            if named or len(values) != len(cls._fields):
                fields = cls._fields
                given = {**cls._field_defaults, **dict(zip(fields, values)), **named}
                if len(values) > len(fields) or given.keys() != {*fields} or not named.keys().isdisjoint(fields[: len(values)]):
                    raise TypeError(f"{cls.__name__} takes each of {', '.join(fields)} once{_unknown(named, fields)}.")
                values = [given[field] for field in fields]
            return tuple.__new__(cls, values)

        @classmethod
        def _make(cls, values):
            return cls(*values)

        def _asdict(self):
            return dict(zip(self._fields, self))

        def _replace(self, **changes):
            return type(self)(**{**self._asdict(), **changes})

        def __getnewargs__(self):
            return tuple(self)

        def __repr__(self):
            return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._asdict().items())})"
