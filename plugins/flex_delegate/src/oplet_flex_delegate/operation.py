"""A TensorFlow operator with its attributes, and the function that runs it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from oplet import Node
from oplet_flex_delegate.graph import RefusedError, Source, import_nodes
from oplet_flex_delegate.library import cpu_kernel, executor, op_def, tensorflow
from oplet_flex_delegate.values import RESOURCE_TYPE, TYPES

__all__ = ["Operation", "Signature", "read_definition", "signature_of"]

#: The DataTypes of what a node reads and writes.
Signature = tuple[tuple[int, ...], tuple[int, ...]]

_NAMES = {number: type.name for type, number in TYPES.items()}


def read_definition(data: bytes) -> Any:
    """Parse a Flex node's NodeDef, and drop its references to the original graph.

    Raises:
        RefusedError: the bytes are no NodeDef.
    """
    tf = tensorflow()
    definition = tf.compat.v1.NodeDef()
    try:
        definition.ParseFromString(data)
    except Exception as error:  # protobuf's class of errors is another in each of its implementations
        raise RefusedError(f"the {len(data)} bytes of its NodeDef cannot be read") from error
    definition.device = ""
    del definition.input[:]
    definition.ClearField("experimental_debug_info")
    for name in [name for name in definition.attr if name.startswith("_")]:
        del definition.attr[name]
    return definition


#: Attributes that are values of elements, which may be any.
_FILLS = ("extrapolation_value",)
#: Attributes that are sizes of windows, and steps of them or in them.
_WINDOWS = ("dilations", "ksize", "ksizes", "rates", "strides")


class Operation:
    """An operator with attributes and types, checked by TensorFlow.

    Attributes:
        op: the operator's name in TensorFlow.
        definition: its NodeDef, with all attributes.
        signature: the DataTypes of the inputs and of the outputs.
        attributes: the attributes by name, as Python values: types as numbers, shapes as lists (None: unknown rank), strings as
            bytes.
        resources: the outputs that are resources (variables, tables) created by the operator, which must be destroyed in the end.
        seeded: whether the operator has a random generator of its own, seeded by its attributes.

    Raises:
        RefusedError: TensorFlow has no such operator for CPUs, refuses its attributes, or expects other inputs or outputs than
            the model has.
    """

    def __init__(self, definition: Any, signature: Signature) -> None:
        reads, writes = signature
        described = op_def(definition.op)
        if described is None:
            raise RefusedError(f"this TensorFlow has no operator {definition.op}")
        _check_counts(definition, described, len(reads) + len(writes))
        [imported] = import_nodes([Source(type) for type in reads], [(definition, range(len(reads)))])
        made = tuple(each.dtype.as_datatype_enum for each in imported.outputs)
        if made != writes:
            raise RefusedError(f"it makes {_listed(made)} in TensorFlow, and {_listed(writes)} in the model")
        self.op: str = imported.type
        self.definition = imported.node_def
        self.signature = signature
        if any(each.is_ref for each in (*described.input_arg, *described.output_arg)):
            raise RefusedError(f"{self.op} works on the reference variables of TensorFlow 1")
        given = self.definition.attr
        if not cpu_kernel(self.op, given):
            raise RefusedError(f"TensorFlow has no kernel of {self.op} for CPUs and these types")
        self._kinds = {each.name: each.type for each in described.attr}
        self.attributes = {name: _attribute(given[name], kind) for name, kind in self._kinds.items()}
        self._check_values()
        if self.op == "Empty":
            self.attributes["init"] = True  # else it shows what the process had in that memory
        held = "container" in self.attributes
        self.resources = tuple(place for place, type in enumerate(made) if held and type == RESOURCE_TYPE)
        self.seeded: bool = described.is_stateful and bool(self.attributes.get("seed") or self.attributes.get("seed2"))

    def _check_values(self) -> None:
        for name, value in self.attributes.items():
            if isinstance(value, float) and not math.isfinite(value) and name not in _FILLS:
                why = "kernels compute sizes and places from such numbers"
            elif name in _WINDOWS and isinstance(value, list) and not all(0 < each < 1 << 24 for each in value):
                why = "sizes of windows and their steps are 1 or more"
            else:
                continue
            raise RefusedError(f"the attribute '{name}' of {self.op} is {value}; {why}")

    def caller(self, container: str, name: str) -> Callable[[Sequence[Any]], Sequence[Any]]:
        """Return a function that runs the operator: TensorFlow tensors in, TensorFlow tensors out.

        Args:
            container: the name of the container in which TensorFlow keeps the resources that it creates.
            name: the resource's name where the attributes give none.
        """
        if self.seeded:
            return self._function()
        attributes = dict(self.attributes)
        if "container" in attributes:
            attributes["container"] = container.encode()
            if "shared_name" in attributes and not attributes["shared_name"]:
                attributes["shared_name"] = name.encode()
        run, op, outputs = executor(), self.op.encode(), len(self.signature[1])
        flat = tuple(part for pair in attributes.items() for part in pair)
        return lambda inputs: run(op, outputs, inputs, flat)

    def _function(self) -> Callable[[Sequence[Any]], Sequence[Any]]:
        """Wrap the operator in a tf.function of its own: outside of one, TensorFlow shares stateful kernels (generators) among
        equal operators.
        """
        tf = tensorflow()
        definition = tf.compat.v1.GraphDef()
        definition.node.add().CopyFrom(self.definition)
        node, reads = definition.node[0], self.signature[0]
        node.name = "node"
        del node.input[:]
        node.input.extend(f"input{place}" for place in range(len(reads)))
        for place, type in enumerate(reads):
            definition.node.add(name=f"input{place}", op="Placeholder").attr["dtype"].type = type

        def body(*inputs: Any) -> Any:
            given = {f"input{place}": value for place, value in enumerate(inputs)}
            wanted = [f"node:{place}" for place in range(len(self.signature[1]))]
            return tf.graph_util.import_graph_def(definition, given, wanted, name="")

        function = tf.compat.v1.wrap_function(body, [tf.TensorSpec(None, tf.as_dtype(type)) for type in reads])
        return lambda inputs: function(*inputs)


def _check_counts(definition: Any, described: Any, most: int) -> None:
    """Raise an error if list attributes demand more inputs or outputs than the node has: TensorFlow would loop up to that number
    first.
    """
    for name in {each.number_attr for each in (*described.input_arg, *described.output_arg)} & set(definition.attr):
        if not 0 <= (count := definition.attr[name].i) <= most:
            raise RefusedError(f"the attribute '{name}' is {count}, and the node has {most} inputs and outputs")


def signature_of(node: Node) -> Signature:
    """Return the TensorFlow DataTypes of a node's inputs and outputs.

    Raises:
        RefusedError: an input is left out, or a type is not TensorFlow's.
    """
    if not all(node.has_input(place) for place in range(len(node.inputs))):
        raise RefusedError("an input is left out, which no operator of TensorFlow allows")
    for tensor in (*node.inputs, *node.outputs):
        if tensor.type not in TYPES:
            raise RefusedError(f"{tensor} is of a type that is not handed over to TensorFlow")
    return tuple(TYPES[each.type] for each in node.inputs), tuple(TYPES[each.type] for each in node.outputs)


def _listed(types: Sequence[int]) -> str:
    return ", ".join(_NAMES.get(type, f"type {type}") for type in types) or "nothing"


def _shape(shape: Any) -> list[int] | None:
    return None if shape.unknown_rank else [each.size for each in shape.dim]


_SINGLE: dict[str, Callable[[Any], Any]] = {
    "type": lambda value: value.type,
    "shape": lambda value: _shape(value.shape),
    "string": lambda value: value.s,
    "int": lambda value: value.i,
    "float": lambda value: value.f,
    "bool": lambda value: value.b,
    "tensor": lambda value: value.tensor,
    "func": lambda value: value.func,
}
_LISTED: dict[str, Callable[[Any], Any]] = {
    "type": lambda values: list(values.type),
    "shape": lambda values: [_shape(each) for each in values.shape],
    "string": lambda values: list(values.s),
    "int": lambda values: list(values.i),
    "float": lambda values: list(values.f),
    "bool": lambda values: list(values.b),
    "tensor": lambda values: list(values.tensor),
    "func": lambda values: list(values.func),
}


def _attribute(value: Any, kind: str) -> Any:
    """Convert an AttrValue to what eager execution takes."""
    if kind.startswith("list("):
        return _LISTED[kind[5:-1]](value.list)
    return _SINGLE[kind](value)
