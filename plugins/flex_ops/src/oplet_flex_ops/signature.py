"""Signatures of TensorFlow ops: input and output types and ranks, and checks of nodes against them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from oplet import Context, Node, Tensor, TensorType, ensure, ensure_type
from oplet.kernels.operands import ensure_operands
from oplet_flex_ops.attributes import Attributes, attributes_of

__all__ = ["FLOATS", "INDICES", "NUMBERS", "REALS", "Signature", "Types"]

#: Element types that a type attribute allows, the default of an output first; empty for any.
Types = tuple[TensorType, ...]

FLOATS: Final[Types] = (TensorType.FLOAT32, TensorType.FLOAT64, TensorType.FLOAT16, TensorType.BFLOAT16)
REALS: Final[Types] = (
    *FLOATS, TensorType.INT32, TensorType.INT64, TensorType.INT16, TensorType.INT8, TensorType.UINT8, TensorType.UINT16,
    TensorType.UINT32, TensorType.UINT64,
)  # fmt: skip
NUMBERS: Final[Types] = (*REALS, TensorType.COMPLEX64, TensorType.COMPLEX128)
INDICES: Final[Types] = (TensorType.INT32, TensorType.INT64)

_ARGUMENT = re.compile(r"(?:(\w+): )?(?:(\w+)?(\*))?(\w+)(?:=(\w+))?(?:\[(\d)\])?(!?)")


class _Argument(NamedTuple):
    """One argument of an OpDef.

    Attributes:
        name: the argument's name in TensorFlow; "" if the signature has no names.
        number: the attribute with the number of its tensors; None for one tensor.
        is_list: whether its types are a list, which also says how many tensors it has.
        type: the name of a TensorType, or of the attribute that has the type.
        default: the name of the attribute's TensorType where a node lacks it; None where it must not.
        rank: the number of dimensions that the tensors must have; None for any.
        is_read: whether the outputs' shapes depend on its values.
    """

    name: str
    number: str | None
    is_list: bool
    type: str
    default: str | None
    rank: int | None
    is_read: bool


class _Slot(NamedTuple):
    """One tensor of a signature's argument; `type` is an attribute's name, or the type itself."""

    name: str
    type: str | TensorType
    rank: int | None


class Signature:
    """Inputs and outputs of an op as in its OpDef in tensorflow/core/ops.

    The text lists arguments as `name: type`, or by their types alone, inputs and outputs divided by `->`. A type is that of
    `TensorType` or an attribute of the node; `N*T` stands for N tensors of type T (N is an attribute), `*T` for one per type in the
    list T; `T=INT32` gives the type of an attribute that a node may lack; `[2]` after a type is the required rank, `!` at the end
    says that the outputs' shapes depend on the argument's values.

    Args:
        text: the arguments, such as "input: T, axis: Tidx[0]! -> output: T", or "T, Tidx! -> T".
        types: the allowed types of each type attribute; an attribute that is not named may be any type. With names, the first is the
            default of outputs if the node lacks the attribute.
        op: the operator's name; "" in a signature without names.

    Attributes:
        op: the operator's name.
        reads: the positions of the inputs on whose values the outputs' shapes depend; negative behind an argument of many tensors.
        types: the allowed types of each type attribute.
    """

    def __init__(self, text: str, types: Mapping[str, Types], op: str = "") -> None:
        self.op, self.types = op, types
        self._inputs, self._outputs = (_arguments(side) for side in text.split("->"))
        self.reads: list[int] = []
        first = 0
        for number, argument in enumerate(self._inputs):
            if argument.is_read:
                self.reads.append(number - first)
            if argument.number or argument.is_list:
                first = len(self._inputs)

    def main_types(self) -> Types:
        """Return the allowed types of the first input, or output if there is none."""
        kind = (*self._inputs, *self._outputs)[0].type
        return (TensorType[kind],) if kind in TensorType.__members__ else self.types[kind]

    def ensure(self, node: Node) -> None:
        """Check a node's tensors and type attributes against a signature without names.

        Raises:
            EnsureError: the number or types of the tensors do not fit, or an attribute is missing.
        """
        attributes, inputs = attributes_of(node), []
        for argument in self._inputs:
            most = len(node.inputs)
            inputs += [argument] * (attributes.integer(argument.number, least=1, most=most) if argument.number else 1)
        ensure_operands(node, len(inputs), len(self._outputs))
        defaults = {each.type: TensorType[each.default] for each in (*self._inputs, *self._outputs) if each.default}
        found = {name: attributes.type(name, *allowed, default=defaults.get(name)) for name, allowed in self.types.items()}
        for tensor, (_, _, _, kind, *_) in zip([*node.inputs, *node.outputs], [*inputs, *self._outputs]):
            if kind not in found:
                ensure_type(tensor, TensorType[kind])
            elif tensor.type is not found[kind]:
                ensure(
                    False, f"the attribute '{kind}' of {attributes.op} is {found[kind].name}, but {tensor} is {tensor.type.name}."
                )

    def check(self, context: Context, node: Node, attributes: Attributes) -> None:
        """Check a node's tensors against the signature, and set its outputs' types from its attributes.

        Raises:
            EnsureError: the number, types or ranks of the tensors do not fit.
        """
        ensure(attributes.op == self.op, f"its NodeDef is one of {attributes.op!r:.60}, not of {self.op}.")
        given, made = self._slots(self._inputs, attributes), self._slots(self._outputs, attributes)
        for slots, tensors, what in ((given, node.inputs, "inputs"), (made, node.outputs, "outputs")):
            ensure(
                len(slots) == len(tensors) and None not in tensors,
                f"it has {sum(tensor is not None for tensor in tensors)} {what}; {self.op} has {len(slots)} with these attributes"
                f"{': ' if slots else ''}{', '.join(slot.name for slot in slots[:12])}.",
            )
        found: dict[str, TensorType] = {}
        for slot, tensor in zip(given, node.inputs):
            self._check_input(slot, tensor, attributes, found)
        for slot, output in zip(made, node.outputs):
            context.set_type(output, self._type(slot.type, attributes, found))

    def _check_input(self, slot: _Slot, tensor: Tensor, attributes: Attributes, found: dict[str, TensorType]) -> None:
        if isinstance(slot.type, str) and slot.type not in found and slot.type not in attributes.node_def.attributes:
            # A NodeDef may leave out attributes with defaults; a tensor of the file says what its type is.
            allowed = self.types.get(slot.type, ())
            if slot.type not in TensorType.__members__ and (tensor.type in allowed or not allowed):
                found[slot.type] = tensor.type
        wanted = self._type(slot.type, attributes, found)
        ensure(tensor.type == wanted, lambda: f"{slot.name} of {self.op} is {wanted.name}, but {tensor} is {tensor.type.name}.")
        ensure(
            slot.rank is None or tensor.ndim == slot.rank,
            lambda: f"{slot.name} of {self.op} has {slot.rank} dimensions, but {tensor} has {tensor.ndim}.",
        )

    def _type(self, type: str | TensorType, attributes: Attributes, found: dict[str, TensorType]) -> TensorType:
        if isinstance(type, TensorType):
            return type
        if type in TensorType.__members__:
            return TensorType[type]
        if type not in found:
            allowed = self.types.get(type, ())
            found[type] = attributes.type(type, *allowed, default=allowed[0] if allowed else None)
        return found[type]

    def _slots(self, arguments: Sequence[_Argument], attributes: Attributes) -> list[_Slot]:
        return [slot for argument in arguments for slot in self._expand(argument, attributes)]

    def _expand(self, argument: _Argument, attributes: Attributes) -> Iterator[_Slot]:
        if argument.is_list:
            allowed = self.types.get(argument.type, ())
            for number, type in enumerate(attributes.types(argument.type)):
                ensure(not allowed or type in allowed, f"{self.op} takes no {type.name} in {argument.name}.")
                yield _Slot(f"{argument.name}[{number}]", type, argument.rank)
        elif argument.number is not None:
            least = 1 if argument.number == "N" else 0  # every OpDef says so
            for number in range(attributes.integer(argument.number, least=least, most=1 << 16)):
                yield _Slot(f"{argument.name}[{number}]", argument.type, argument.rank)
        else:
            yield _Slot(argument.name, argument.type, argument.rank)


@lru_cache
def _arguments(text: str) -> list[_Argument]:
    return [
        _Argument(name, count or None, bool(star) and not count, type, default or None, int(rank) if rank else None, bool(read))
        for name, count, star, type, default, rank, read in _ARGUMENT.findall(text)
    ]
