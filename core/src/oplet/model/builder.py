"""Write models: tensors, nodes, subgraphs and signatures in, a `Model` out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet.errors import ModelError
from oplet.model.model import SCHEMA_VERSION, Model
from oplet.ops.tensor import numpy_dtype, tensor_type
from oplet.schema import tables
from oplet.schema.encode import encode
from oplet.schema.enums import BuiltinOperator, TensorType
from oplet.schema.options import BuiltinOptions
from oplet.schema.stablehlo_options import BuiltinOptions2
from oplet.schema.table import Table

__all__ = ["ModelBuilder", "SubgraphBuilder", "pack_strings", "pack_values"]


def pack_strings(values: Any) -> bytes:
    """A string tensor's buffer: the count, the offsets (int32), then the bytes."""
    flat = [v.encode() if isinstance(v, str) else bytes(v) for v in np.asarray(values, object).ravel().tolist()]
    offsets = np.cumsum([4 * (len(flat) + 2), *map(len, flat)], dtype=np.int64)
    return np.array([len(flat), *offsets], "<i4").tobytes() + b"".join(flat)


def pack_values(values: Any, type: TensorType) -> bytes:
    """The bytes of a constant: little-endian values; int4 two to a byte and int2 four, the low bits first."""
    if type is TensorType.STRING:
        return pack_strings(values)
    array = np.ascontiguousarray(values, numpy_dtype(type))
    bits = {TensorType.INT4: 4, TensorType.UINT4: 4, TensorType.INT2: 2}.get(type)
    if bits is None:
        return array.tobytes()
    per_byte = 8 // bits
    flat = array.ravel().astype(np.uint8) & ((1 << bits) - 1)
    flat = np.concatenate([flat, np.zeros(-flat.size % per_byte, np.uint8)]).reshape(-1, per_byte)
    packed = np.zeros(len(flat), np.uint8)
    for position in range(per_byte):
        packed |= flat[:, position] << (bits * position)
    return packed.tobytes()


class SubgraphBuilder:
    """Collects one subgraph's tensors and nodes.

    Attributes:
        table: the subgraph as it stands.
    """

    def __init__(self, model: ModelBuilder, name: str) -> None:
        self.model = model
        self._tensors: list[tables.Tensor] = []
        self._operators: list[tables.Operator] = []
        self.table = tables.SubGraph(name=name, tensors=self._tensors, operators=self._operators)

    def add_tensor(
        self,
        name: str,
        type: Any,
        shape: Sequence[int],
        *,
        data: Any = None,
        scale: float | Sequence[float] | None = None,
        zero_point: int | Sequence[int] | None = None,
        quantized_dimension: int = 0,
        quantization: tables.QuantizationParameters | None = None,
        shape_signature: Sequence[int] | None = None,
        sparsity: tables.SparsityParameters | None = None,
        is_variable: bool = False,
    ) -> int:
        """Add a tensor and return its index.

        Args:
            type: a TensorType or a numpy dtype.
            data: its constant value; bytes are taken as they are.
            scale: of its quantization, one value or one per slice along `quantized_dimension`.
            zero_point: as many as scales; zeros when left out.
            quantization: a whole table, in place of the three above.
        """
        type = tensor_type(type)
        if quantization is None and scale is not None:
            scales = np.atleast_1d(np.asarray(scale, np.float32))
            zero_points = (
                np.zeros(len(scales), np.int64) if zero_point is None else np.atleast_1d(np.asarray(zero_point, np.int64))
            )
            quantization = tables.QuantizationParameters(scale=scales, zero_point=zero_points)
            if quantized_dimension:
                quantization.quantized_dimension = quantized_dimension
        raw = data if data is None or isinstance(data, bytes) else pack_values(data, type)
        tensor = tables.Tensor(
            name=name, type=type, shape=np.asarray(shape, np.int32).reshape(-1), buffer=self.model.add_buffer(raw), has_rank=True
        )
        if quantization is not None:
            tensor.quantization = quantization
        if shape_signature is not None:
            tensor.shape_signature = np.asarray(shape_signature, np.int32)
        if sparsity is not None:
            tensor.sparsity = sparsity
        if is_variable:
            tensor.is_variable = True
        self._tensors.append(tensor)
        return len(self._tensors) - 1

    def add_operator(
        self,
        op: BuiltinOperator | str,
        inputs: Sequence[int],
        outputs: Sequence[int],
        options: Table | None = None,
        *,
        version: int = 1,
        custom_options: bytes = b"",
        intermediates: Sequence[int] = (),
    ) -> int:
        """Add a node and return its index.

        Args:
            op: a built-in operator, or a name: a builtin's ("ADD") or else a custom op's ("Atan").
            inputs: tensor indices, -1 for an optional input that is left out.
            options: the options table of a built-in operator.
            custom_options: the bytes of a custom op's options.
        """
        operator = tables.Operator(
            opcode_index=self.model.add_operator_code(op, version),
            inputs=np.asarray(inputs, np.int32).reshape(-1),
            outputs=np.asarray(outputs, np.int32).reshape(-1),
        )
        if options is not None:
            if type(options) in BuiltinOptions.values():
                operator.builtin_options = options
            elif type(options) in BuiltinOptions2.values():
                operator.builtin_options_2 = options
            else:
                raise ModelError(f"{type(options).__name__} is not an options table.")
        if custom_options:
            operator.custom_options = np.frombuffer(custom_options, np.uint8)
        if len(intermediates):
            operator.intermediates = np.asarray(intermediates, np.int32)
        self._operators.append(operator)
        return len(self._operators) - 1

    def set_inputs(self, *indices: int) -> None:
        """Say which tensors the caller feeds."""
        self.table.inputs = np.asarray(indices, np.int32)

    def set_outputs(self, *indices: int) -> None:
        """Say which tensors the caller reads."""
        self.table.outputs = np.asarray(indices, np.int32)


class ModelBuilder:
    """Collects the parts of a model.

    Example:
        >>> from oplet import ModelBuilder
        >>> builder = ModelBuilder()
        >>> main = builder.add_subgraph("main")
        >>> x, y = main.add_tensor("x", "float32", [4]), main.add_tensor("y", "float32", [4])
        >>> main.set_inputs(x); main.set_outputs(y)
        >>> main.add_operator("RELU", [x], [y])
        0
        >>> len(builder.to_bytes()) > 100
        True
    """

    def __init__(self, description: str = "") -> None:
        self._buffers = [tables.Buffer()]
        self._operator_codes: list[tables.OperatorCode] = []
        self.root = tables.Model(
            version=SCHEMA_VERSION,
            operator_codes=self._operator_codes,
            subgraphs=[],
            buffers=self._buffers,
            description=description or None,
        )
        self._codes: dict[tuple[int, str, int], int] = {}

    def add_subgraph(self, name: str = "main") -> SubgraphBuilder:
        """Start a subgraph; the first is the one that runs."""
        subgraph = SubgraphBuilder(self, name)
        self.root.subgraphs = [*(self.root.subgraphs or []), subgraph.table]
        return subgraph

    def add_buffer(self, data: bytes | NDArray[np.uint8] | None) -> int:
        """Add a buffer and return its index; None and nothing at all share the empty buffer 0."""
        if data is None:
            return 0
        self._buffers.append(tables.Buffer(data=np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data))
        return len(self._buffers) - 1

    def add_operator_code(self, op: BuiltinOperator | str, version: int = 1) -> int:
        """The index of an operator code, added if it is new."""
        custom = ""
        if isinstance(op, str):
            op, custom = (BuiltinOperator[op], "") if op in BuiltinOperator.__members__ else (BuiltinOperator.CUSTOM, op)
        key = int(op), custom, version
        found = self._codes.get(key)
        if found is None:
            # Readers before schema 3a look only at the old field of one byte.
            old = min(int(op), int(BuiltinOperator.PLACEHOLDER_FOR_GREATER_OP_CODES))
            self._operator_codes.append(
                tables.OperatorCode(builtin_code=op, deprecated_builtin_code=old, version=version, custom_code=custom or None)
            )
            found = self._codes[key] = len(self._operator_codes) - 1
        return found

    def add_signature(self, key: str, inputs: Mapping[str, int], outputs: Mapping[str, int], subgraph: int = 0) -> None:
        """Give a subgraph a name, and its inputs and outputs theirs (name to tensor index)."""
        signature = tables.SignatureDef(
            signature_key=key,
            inputs=[tables.TensorMap(name=n, tensor_index=i) for n, i in inputs.items()],
            outputs=[tables.TensorMap(name=n, tensor_index=i) for n, i in outputs.items()],
            subgraph_index=subgraph,
        )
        self.root.signature_defs = [*(self.root.signature_defs or []), signature]

    def add_metadata(self, name: str, data: bytes) -> None:
        """Add a named buffer."""
        entry = tables.Metadata(name=name, buffer=self.add_buffer(data))
        self.root.metadata = [*(self.root.metadata or []), entry]

    def build(self) -> Model:
        """The model as it stands."""
        return Model.from_bytes(self.to_bytes())

    def to_bytes(self) -> bytes:
        """The model as the bytes of a .tflite file."""
        size = sum(b.data.size for b in self._buffers if b.data is not None)
        return encode(self.root, size_hint=size + 4096)
