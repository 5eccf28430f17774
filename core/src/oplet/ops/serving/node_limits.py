"""Limits that a kernel declares on the nodes it serves; other nodes go to the next provider."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from oplet.errors import OpletError, ResolverError
from oplet.ops.context import Node
from oplet.records import Record
from oplet.schema.enums import BuiltinOperator, TensorType
from oplet.schema.table import Table

__all__ = ["NodeLimits"]

_NO_OPTIONS: Mapping[str, Sequence[Any]] = MappingProxyType({})


class NodeLimits(Record):
    """The nodes that a kernel serves. The runtime checks them before each `prepare`, and offers other nodes to the next kernel.

    Attributes without a value set no limit. Optional inputs that a node omits are not checked.

    Attributes:
        inputs: for each of the first inputs the types that it may have; () for any.
        outputs: the same for the outputs.
        ranks: for each of the first inputs the numbers of dimensions that it may have; () for any.
        constant: positions of inputs that must be constant.
        options: the values that options may have, by name. The names are fields of `table` for a built-in operator, and keys of the
            map of custom options or composite attributes for other ops, where None stands for a missing key.
        table: the class of a built-in operator's options, such as `oplet.schema.options.SoftmaxOptions`.

    Raises:
        ResolverError: an attribute has an invalid type, rank, position or field.

    Examples:
        >>> from oplet import NodeLimits, TensorType
        >>> str(NodeLimits(inputs=[[TensorType.FLOAT32]], ranks=[[2, 4]]))
        'input 0 of type FLOAT32 and of 2 or 4 dimensions'
    """

    inputs: Sequence[Sequence[TensorType]] = ()
    outputs: Sequence[Sequence[TensorType]] = ()
    ranks: Sequence[Sequence[int]] = ()
    constant: Sequence[int] = ()
    options: Mapping[str, Sequence[Any]] = _NO_OPTIONS
    table: type[Table] | None = None

    def __post_init__(self) -> None:
        for name in ("inputs", "outputs"):
            types = self._rows(name)
            for row in types:
                for each in row:
                    if not isinstance(each, TensorType):
                        raise ResolverError(f"NodeLimits has {each!r} among the types of {name}; give TensorType.FLOAT32, ...")
        for row in self._rows("ranks"):
            for rank in row:
                if not _is_count(rank):
                    raise ResolverError(f"NodeLimits has {rank!r} among the ranks; a tensor has 0 dimensions or more.")
        try:
            object.__setattr__(self, "constant", tuple(self.constant))
        except TypeError:
            raise ResolverError(f"NodeLimits has {self.constant!r} as constant; give the positions of inputs: [1].") from None
        for position in self.constant:
            if not _is_count(position):
                raise ResolverError(f"NodeLimits has {position!r} among the constant inputs; positions start at 0.")
        self._check_options()

    def __hash__(self) -> int:
        return hash((self.inputs, self.outputs, self.ranks, self.constant, self.table))  # a mapping has no hash

    def _rows(self, name: str) -> tuple[tuple[Any, ...], ...]:
        """Convert an attribute to a tuple of tuples, and return it."""
        given: Any = getattr(self, name)
        try:
            rows = tuple(tuple(row) for row in given)
        except TypeError:
            raise ResolverError(
                f"NodeLimits has {given!r} as {name}; give a list for each of the first tensors, [] for one without limits."
            ) from None
        object.__setattr__(self, name, rows)
        return rows

    def _check_options(self) -> None:
        if not isinstance(self.options, Mapping) or any(
            not isinstance(name, str) or isinstance(values, str) or not isinstance(values, Sequence)
            for name, values in self.options.items()
        ):
            raise ResolverError(f"NodeLimits has {self.options!r} as options; give a list of values for each name.")
        options = {name: tuple(values) for name, values in self.options.items()}
        object.__setattr__(self, "options", MappingProxyType(options))
        if self.table is None:
            return
        if not (isinstance(self.table, type) and issubclass(self.table, Table)):
            raise ResolverError(f"NodeLimits has {self.table!r} as table; give a class of oplet.schema.options.")
        fields = {each.name for each in self.table.fields}
        for name in options.keys() - fields:
            raise ResolverError(
                f"NodeLimits limits {name!r}, which is no option of {self.table.__name__}; it has {', '.join(sorted(fields)) or 'none'}."
            )

    def refusal(self, node: Node) -> str:
        """Return the reason why a node is outside of these limits, by its tensors' present types and shapes; "" if it is within."""
        inputs = node.inputs
        for position, (tensor, types) in enumerate(zip(inputs, self.inputs)) if self.inputs else ():
            if types and tensor is not None and tensor.type not in types:
                return _of_another_type("input", position, tensor.type, types)
        for position, (tensor, types) in enumerate(zip(node.outputs, self.outputs)) if self.outputs else ():
            if types and tensor is not None and tensor.type not in types:
                return _of_another_type("output", position, tensor.type, types)
        for position, ranks in enumerate(self.ranks) if self.ranks else ():
            if ranks and position < len(inputs) and inputs[position] is not None and inputs[position].ndim not in ranks:
                return f"input {position} has {inputs[position].ndim} dimensions, and it serves {_or(map(str, ranks))} there"
        for position in self.constant:
            if position < len(inputs) and inputs[position] is not None and not inputs[position].is_constant:
                return f"input {position} is no constant, and it serves constants alone there"
        return self._refused_option(node) if self.options else ""

    def _refused_option(self, node: Node) -> str:
        try:
            values = self._values(node)
        except OpletError as error:
            return str(error).rstrip(".")
        for name, allowed in self.options.items():
            if not any(_equal(values[name], each) for each in allowed):
                return f"{name} is {_text(values[name])}, and it serves {_or(map(_text, allowed))}"
        return ""

    def _values(self, node: Node) -> dict[str, Any]:
        """Return the node's values of the options that are limited."""
        if self.table is not None:
            table = node.options(self.table)
            return {name: getattr(table, name) for name in self.options}
        given = node.composite_map() if node.op is BuiltinOperator.STABLEHLO_COMPOSITE else node.custom_map()
        return {name: given.get(name) for name in self.options}

    def __str__(self) -> str:
        """Describe the limits in words, for messages and tables."""
        parts: list[str] = []
        for position in range(max(len(self.inputs), len(self.ranks), *(at + 1 for at in self.constant), 0)):
            types, ranks = (row[position] if position < len(row) else () for row in (self.inputs, self.ranks))
            told = [f"of type {_or(map(_text, types))}"] if types else []
            told += [f"of {_or(map(str, ranks))} dimensions"] if ranks else []
            told += ["that is constant"] if position in self.constant else []
            parts += [f"input {position} {' and '.join(told)}"] if told else []
        parts += [f"output {position} of type {_or(map(_text, types))}" for position, types in enumerate(self.outputs) if types]
        parts += [f"{name} {_or(map(_text, values))}" for name, values in self.options.items()]
        return "; ".join(parts) or "any node"


@lru_cache(maxsize=1024)
def _of_another_type(kind: str, position: int, type: TensorType, types: tuple[TensorType, ...]) -> str:
    """Format the reason for refusing a tensor's type; cached, as a model with float16 constants has hundreds of such nodes."""
    return f"{kind} {position} is of type {type.name}, and it serves {_or(t.name for t in types)} there"


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _equal(value: Any, allowed: Any) -> bool:
    """Return whether an option has an allowed value; floats are compared in single precision, as models store them."""
    if isinstance(value, float) and isinstance(allowed, float):
        return bool(np.float32(value) == np.float32(allowed))
    if isinstance(value, np.ndarray) or isinstance(allowed, np.ndarray):
        return np.array_equal(value, allowed)
    return bool(value == allowed)


def _text(value: Any) -> str:
    return str(getattr(value, "name", value))


def _or(words: Iterable[str]) -> str:
    return " or ".join(words) or "nothing"
