"""Builder of one subgraph: its tensors and nodes, each checked when it is added."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from oplet.errors import ModelError
from oplet.model.builders.arguments import (
    FLAG,
    FLAGS,
    INDEX,
    INDICES,
    INDICES_OR_NONE,
    OPERATOR,
    OPTIONS,
    REALS,
    SHAPE,
    SIZES,
    TEXT,
    WHOLE,
    WHOLES,
    Kind,
    one_of,
    takes,
)
from oplet.model.builders.operator_options import misspelt_operator, options_class
from oplet.model.builders.quantization import check_quantization, make_quantization
from oplet.model.builders.sparsity import stored_values
from oplet.model.save.packing import pack_constant, pack_flexbuffer
from oplet.ops.strings import bytes_needed
from oplet.ops.tensor import tensor_type
from oplet.schema import tables
from oplet.schema.enums import BuiltinOperator, TensorType
from oplet.schema.options import BuiltinOptions
from oplet.schema.stablehlo_options import BuiltinOptions2
from oplet.schema.table import Table
from oplet.versions.op_version import op_version

__all__ = ["SubgraphBuilder"]

_OPTIONS, _OPTIONS_2 = frozenset(BuiltinOptions.values()), frozenset(BuiltinOptions2.values())


_VARIANTS = Kind(
    "a list of VariantSubType",
    lambda value: isinstance(value, (list, tuple)) and all(isinstance(each, tables.VariantSubType) for each in value),
)


class _Node(NamedTuple):
    """A node whose operator code is assigned when the model is built; `version` None is the lowest that supports it."""

    operator: tables.Operator
    op: BuiltinOperator
    custom: str
    version: int | None


class ModelParts(Protocol):
    """The methods of `ModelBuilder` that a subgraph's builder calls; a protocol, to avoid a circular import."""

    def add_buffer(self, data: bytes | NDArray[np.uint8] | None) -> int: ...

    def buffer_size(self, index: int, what: str = "A tensor") -> int: ...

    def external_size(self, id: int, what: str = "A tensor") -> int: ...

    def operator_code(self, op: BuiltinOperator, custom: str, version: int) -> int: ...


class SubgraphBuilder:
    """Builder of one subgraph's tensors and nodes.

    Attributes:
        table: the subgraph's table so far; its tensors may still be changed.
        index: the subgraph's index in the model.
    """

    def __init__(self, model: ModelParts, index: int, table: tables.SubGraph) -> None:
        self.model = model
        self.index = index
        self.table = table
        self._tensors: list[tables.Tensor] = [*(table.tensors or [])]
        self._operators: list[tables.Operator] = [*(table.operators or [])]
        table.tensors, table.operators = self._tensors, self._operators
        self._nodes: list[_Node] = []
        self._writers: dict[int, str] = {}
        for number, operator in enumerate(self._operators):
            for written in () if operator.outputs is None else operator.outputs.tolist():
                self._writers[written] = f"node {number}"

    @property
    def _where(self) -> str:
        return f"subgraph {self.index} ('{self.table.name or ''}')"

    @takes(
        name=TEXT,
        shape=SHAPE,
        buffer=INDEX,
        external_buffer=INDEX,
        scale=REALS,
        zero_point=WHOLES,
        quantized_dimension=WHOLE,
        minimum=REALS,
        maximum=REALS,
        details=OPTIONS,
        quantization=one_of(tables.QuantizationParameters),
        shape_signature=SIZES,
        sparsity=one_of(tables.SparsityParameters),
        is_variable=FLAG,
        variant_tensors=_VARIANTS,
    )
    def add_tensor(
        self,
        name: str,
        type: Any,
        shape: Sequence[int | None] | None,
        *,
        data: Any = None,
        buffer: int | None = None,
        external_buffer: int | None = None,
        scale: float | Sequence[float] | NDArray[Any] | None = None,
        zero_point: int | Sequence[int] | NDArray[Any] | None = None,
        quantized_dimension: int = 0,
        minimum: float | Sequence[float] | None = None,
        maximum: float | Sequence[float] | None = None,
        details: Table | None = None,
        quantization: tables.QuantizationParameters | None = None,
        shape_signature: Sequence[int] | None = None,
        sparsity: tables.SparsityParameters | None = None,
        is_variable: bool = False,
        variant_tensors: Sequence[tables.VariantSubType] = (),
    ) -> int:
        """Add a tensor and return its index.

        Args:
            name: its name.
            type: a TensorType or a numpy dtype.
            shape: its shape, with -1 or None for a free dimension (which is 1 until the input is resized); None for unknown rank.
            data: its constant value: an array, or encoded bytes.
            buffer: the index of an existing buffer, in place of `data`; equal constants can share one.
            external_buffer: an id that `ModelBuilder.add_external_buffer` returned, in place of `data`.
            scale: one scale, or one per slice along `quantized_dimension`.
            zero_point: as many zero points as scales; by default zeros.
            quantized_dimension: the axis along which the scales differ.
            minimum: the smallest value during calibration, one or one per slice; not used at run time.
            maximum: the largest value during calibration, one or one per slice; not used at run time.
            details: the table of another form of quantization: BlockwiseQuantization, MultiAxisQuantization or CustomQuantization.
            quantization: a complete table, in place of the six above.
            shape_signature: the shape with -1 for free dimensions, if `shape` has other sizes than 1 for them.
            sparsity: the storage of sparse data, as `sparsify` returns it.
            is_variable: whether it keeps its value between runs.
            variant_tensors: the shapes and types of the tensors in a variant tensor.

        Raises:
            ModelError: the data or the quantization does not fit the tensor, or an argument is of a wrong kind.
        """
        type = tensor_type(type)
        what = f"Tensor {len(self._tensors)} ('{name}') of {self._where}"
        sizes, signature = _shape(shape, shape_signature, what)
        tensor = tables.Tensor(name=name, type=type, shape=np.array(sizes, np.int32), buffer=0)
        if shape is not None:
            tensor.has_rank = True
        if signature is not None:
            tensor.shape_signature = np.array(signature, np.int32)
        given = make_quantization(scale, zero_point, quantized_dimension, minimum, maximum, details)
        if given is not None and quantization is not None:
            raise ModelError(f"{what} has a quantization table and single values of one; give one or the other.")
        if (quantization := given if quantization is None else quantization) is not None:
            check_quantization(quantization, sizes, len(self._tensors), what)
            tensor.quantization = quantization
        if sparsity is not None:
            tensor.sparsity = sparsity
        if variant_tensors:
            tensor.variant_tensors = list(variant_tensors)
        if is_variable:
            tensor.is_variable = True
        sources = [
            word
            for word, value in (("data", data), ("buffer", buffer), ("external_buffer", external_buffer))
            if value is not None
        ]
        if len(sources) > 1 or (sources and is_variable):
            raise ModelError(
                f"{what} has {' and '.join(sources)}{', and is a variable' if is_variable else ''}; one is all that it can have."
            )
        stored = None if sparsity is None else stored_values(sparsity)
        if data is not None:
            tensor.buffer = self.model.add_buffer(pack_constant(data, type, sizes, what, stored=stored))
        elif buffer is not None:
            tensor.buffer = buffer
            self._check_size(self.model.buffer_size(buffer, what), type, sizes, stored, what)
        elif external_buffer is not None:
            tensor.external_buffer = external_buffer
            self._check_size(self.model.external_size(external_buffer, what), type, sizes, stored, what)
        self._tensors.append(tensor)
        return len(self._tensors) - 1

    def _check_size(self, size: int, type: TensorType, sizes: Sequence[int], stored: int | None, what: str) -> None:
        needed = bytes_needed(sizes if stored is None else (stored,), type)
        if needed is not None and size < needed:
            raise ModelError(f"{what} takes {needed} bytes for the shape {list(sizes)} of {type.name}, its buffer has {size}.")

    @takes(
        op=OPERATOR,
        inputs=INDICES_OR_NONE,
        outputs=INDICES,
        options=OPTIONS,
        version=WHOLE,
        custom=FLAG,
        intermediates=INDICES,
        mutating_variable_inputs=FLAGS,
    )
    def add_operator(
        self,
        op: BuiltinOperator | str,
        inputs: Sequence[int | None],
        outputs: Sequence[int],
        options: Table | None = None,
        *,
        version: int | None = None,
        custom: bool = False,
        custom_options: bytes | Mapping[str, Any] | Sequence[Any] = b"",
        intermediates: Sequence[int] = (),
        mutating_variable_inputs: Sequence[bool] = (),
    ) -> int:
        """Add a node and return its index.

        Args:
            op: a built-in operator, its name ("ADD"), or a custom op's name ("Atan").
            inputs: tensor indices; None or -1 for an optional input that is omitted.
            outputs: tensor indices.
            options: the options table of a built-in operator; None for the defaults.
            version: the op's version; None for 1 for a custom op, else for the lowest version that supports the node, determined when
                the model is built.
            custom: whether `op` is a custom op's name even if it looks like a misspelt built-in one.
            custom_options: the options of a custom op: bytes, or a dict or list, which is encoded as FlexBuffers.
            intermediates: indices of tensors with the quantization of values inside the node (LSTM).
            mutating_variable_inputs: for each input, whether the node writes it.

        Raises:
            ModelError: a tensor does not exist or is written twice, or the options are not this operator's.
        """
        op, name = _identify(op, custom)
        what = f"Node {len(self._operators)} ({name or op.name}) of {self._where}"
        given = [-1 if index is None else int(index) for index in inputs]
        made = [int(index) for index in outputs]
        self._check_indices(given, "input", what, optional=True)
        self._check_indices(made, "output", what)
        self._check_indices(intermediates, "intermediate", what, optional=True)
        operator = tables.Operator(inputs=np.array(given, np.int32), outputs=np.array(made, np.int32))
        if options is not None:
            _set_options(operator, options, op, what)
        if not (isinstance(custom_options, bytes) and not custom_options):
            if op is not BuiltinOperator.CUSTOM:
                raise ModelError(f"{what} is built in; only custom ops have custom options.")
            raw = bytes(custom_options) if isinstance(custom_options, (bytes, bytearray)) else pack_flexbuffer(custom_options)
            operator.custom_options = np.frombuffer(raw, np.uint8)
        if len(mutating_variable_inputs):
            if len(mutating_variable_inputs) != len(given):
                raise ModelError(
                    f"{what} says of {len(mutating_variable_inputs)} inputs whether it writes them, and has {len(given)}."
                )
            operator.mutating_variable_inputs = np.array(mutating_variable_inputs, np.bool_)
        if len(intermediates):
            operator.intermediates = np.array(intermediates, np.int32)
        if version is not None and version < 1:
            raise ModelError(f"{what} has the version {version}; versions begin at 1.")
        for index in made:
            if (writer := self._writers.setdefault(index, what)) is not what:
                raise ModelError(f"{what} writes tensor {index} ('{self._tensors[index].name}'), which {writer} writes already.")
        self._operators.append(operator)
        self._nodes.append(_Node(operator, op, name, 1 if version is None and op is BuiltinOperator.CUSTOM else version))
        return len(self._operators) - 1

    def _check_indices(self, indices: Iterable[int], role: str, what: str, optional: bool = False) -> None:
        count = len(self._tensors)
        for position, index in enumerate(indices):
            if not (0 <= index < count or (optional and index == -1)):
                raise ModelError(f"{what} has {role} {position} at tensor {index}; there are {count} tensors so far.")

    @takes(indices=INDICES)
    def set_inputs(self, *indices: int) -> None:
        """Set the tensors that the caller writes, by index."""
        self._check_indices(indices, "input", self._where.capitalize())
        self.table.inputs = np.array(indices, np.int32)

    @takes(indices=INDICES)
    def set_outputs(self, *indices: int) -> None:
        """Set the tensors that the caller reads, by index."""
        self._check_indices(indices, "output", self._where.capitalize())
        self.table.outputs = np.array(indices, np.int32)

    def settle(self) -> None:
        """Set each node's operator code index; nodes without a given version get the lowest that supports them."""
        for role, indices in (("inputs", self.table.inputs), ("outputs", self.table.outputs)):
            if indices is None:
                raise ModelError(f"The {role} of {self._where} are not set; call set_{role}, with nothing if it has none.")
        for node in self._nodes:
            version = node.version
            if version is None:
                operator = node.operator
                options = operator.builtin_options if operator.builtin_options is not None else operator.builtin_options_2
                version = op_version(node.op, self._at(operator.inputs), self._at(operator.outputs), options)
            node.operator.opcode_index = self.model.operator_code(node.op, node.custom, version)

    def _at(self, indices: NDArray[np.int32] | None) -> list[tables.Tensor | None]:
        return [self._tensors[i] if i >= 0 else None for i in (() if indices is None else indices.tolist())]


def _identify(op: BuiltinOperator | str, custom: bool) -> tuple[BuiltinOperator, str]:
    """Return the built-in operator (CUSTOM for custom ops) and the custom op's name ("" for others)."""
    if not isinstance(op, str):
        if op is BuiltinOperator.CUSTOM:
            raise ModelError("A custom op is added by its name.")
        return BuiltinOperator(op), ""
    if not op:
        raise ModelError("A custom op needs a name.")
    if not custom:
        if op in BuiltinOperator.__members__:
            return BuiltinOperator[op], ""
        if (meant := misspelt_operator(op)) is not None:
            raise ModelError(f"There is no operator '{op}'; did you mean '{meant}'? A custom op of that name needs custom=True.")
    return BuiltinOperator.CUSTOM, op


def _set_options(operator: tables.Operator, options: Table, op: BuiltinOperator, what: str) -> None:
    kind = type(options)
    if kind not in _OPTIONS and kind not in _OPTIONS_2:
        raise ModelError(f"{kind.__name__} is not an options table. {what} was to get it.")
    right = options_class(op)
    if kind is not right:
        raise ModelError(f"{what} takes {right.__name__ if right is not None else 'no options'}, not {kind.__name__}.")
    if kind in _OPTIONS:
        operator.builtin_options = options
    else:
        operator.builtin_options_2 = options


def _shape(
    shape: Sequence[int | None] | None, signature: Sequence[int] | None, what: str
) -> tuple[list[int], Sequence[int] | None]:
    """Return the shape with 1 for free dimensions, and the shape signature if there are any free ones."""
    free = [-1 if size is None else int(size) for size in (() if shape is None else shape)]
    for size in (*free, *(signature if signature is not None else ())):
        if not -1 <= size < 2**31:
            raise ModelError(f"{what} has a dimension of {size}; it is at least 0, or -1 where it is free.")
    sizes = [1 if size == -1 else size for size in free]
    if signature is None:
        return sizes, free if -1 in free else None
    if -1 in free:
        raise ModelError(f"{what} has a free dimension in its shape {free} and the signature {list(signature)}; one says it.")
    if len(signature) and len(signature) != len(sizes):
        raise ModelError(f"{what} has the shape {sizes} and a signature of another rank, {list(signature)}.")
    return sizes, signature
