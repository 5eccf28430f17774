"""Builder of models, from tensors, nodes, subgraphs and signatures."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from oplet.errors import ModelError
from oplet.model.builders.arguments import BINARY, BYTES, FLAG, NAMES, OPERATOR, TEXT, VERSION, WHOLE, Kind, one_of, takes
from oplet.model.builders.subgraph_builder import SubgraphBuilder
from oplet.model.files.external import ExternalFiles
from oplet.model.model import SCHEMA_VERSION, Model
from oplet.model.save.packing import pack_strings, pack_values
from oplet.schema import tables
from oplet.schema.enums import BuiltinOperator
from oplet.versions.model_versions import make_operator_code, set_minimum_runtime

__all__ = ["ModelBuilder", "SubgraphBuilder", "pack_strings", "pack_values"]


_CONTENT = Kind("bytes, an array or None", lambda value: value is None or BINARY.fits(value))
_SUBGRAPH = Kind(
    "what add_subgraph returned, or its number", lambda value: isinstance(value, SubgraphBuilder) or WHOLE.fits(value)
)
_RELEASES = Kind(
    "a mapping from a custom op's name and version to a release, such as {('MyOp', 2): '2.19.0'}",
    lambda value: (
        isinstance(value, Mapping)
        and all(isinstance(key, tuple) and len(key) == 2 and isinstance(release, str) for key, release in value.items())
    ),
)


class ModelBuilder:
    """Builder of a model.

    Attributes:
        root: the model's tables so far.
        subgraphs: the builders of its subgraphs; the first subgraph is the one that `invoke` runs.

    Examples:
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

    @takes("ModelBuilder", description=TEXT, minimum_runtime=FLAG, runtime_versions=_RELEASES)
    def __init__(
        self,
        description: str = "",
        *,
        minimum_runtime: bool = True,
        runtime_versions: Mapping[tuple[str, int], str] | None = None,
    ) -> None:
        """
        Args:
            description: the description in the file.
            minimum_runtime: whether to write the metadata entry `min_runtime_version`.
            runtime_versions: first releases that run custom ops, by name and version, for this entry.
        """
        self.root = tables.Model(
            version=SCHEMA_VERSION, operator_codes=[], subgraphs=[], buffers=[tables.Buffer()], description=description or None
        )
        self.subgraphs: list[SubgraphBuilder] = []
        self._minimum_runtime = minimum_runtime
        self._runtime_versions = runtime_versions
        self._codes: dict[tuple[int, str, int], int] = {}
        self._kept_codes: list[tables.OperatorCode] = []
        self._external = ExternalFiles(self.root)
        # Of a model that is continued: its file's bytes, and parts of it that tables do not hold.
        self._source = memoryview(b"")
        self._unknown: Sequence[str] = ()
        self._made_of: Model | None = None

    @classmethod
    @takes(model=one_of(Model))
    def from_model(cls, model: Model, **arguments: Any) -> ModelBuilder:
        """Create a builder that continues an existing model; its nodes keep their versions, and the model is not changed.

        Tables of tensors and nodes are shared with the model, not copied: a change to one of them affects both.

        Args:
            model: the model.
            arguments: arguments of the constructor.

        Raises:
            ModelError: the model's constants cannot be read.
        """
        builder = cls(**arguments)
        model.check_files()
        builder._source, builder._unknown, builder._made_of = model.data, model.unknown, model
        root = builder.root = copy.copy(model.root)
        for name in ("buffers", "subgraphs", "metadata", "signature_defs", "external_buffers", "external_buffer_groups"):
            if getattr(root, name) is not None:
                setattr(root, name, list(getattr(root, name)))
        root.buffers = [
            tables.Buffer(data=model.buffer(i)) if b.offset > 1 else b for i, b in enumerate(root.buffers or [tables.Buffer()])
        ]
        root.subgraphs = [copy.copy(subgraph) for subgraph in root.subgraphs or []]
        for subgraph in root.subgraphs:
            subgraph.operators = [_with_options(model, operator) for operator in subgraph.operators or []]
        builder._kept_codes = list(root.operator_codes or ())
        builder.subgraphs = [SubgraphBuilder(builder, i, table) for i, table in enumerate(root.subgraphs)]
        builder._external = ExternalFiles(root)
        builder._external.keep(model)
        return builder

    @takes(name=TEXT)
    def add_subgraph(self, name: str = "main") -> SubgraphBuilder:
        """Add a subgraph and return its builder; the first subgraph is the one that `invoke` runs."""
        subgraphs: list[tables.SubGraph] = self.root.subgraphs  # type: ignore[assignment]  # a list since the constructor
        subgraph = SubgraphBuilder(self, len(self.subgraphs), tables.SubGraph(name=name))
        subgraphs.append(subgraph.table)
        self.subgraphs.append(subgraph)
        return subgraph

    @takes(data=_CONTENT)
    def add_buffer(self, data: bytes | NDArray[np.uint8] | None) -> int:
        """Add a buffer and return its index; None and empty data have the index 0, of the empty buffer."""
        if data is None:
            return 0
        buffers = self._buffers
        buffers.append(tables.Buffer(data=np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data))
        return len(buffers) - 1

    @property
    def _buffers(self) -> list[tables.Buffer]:
        if self.root.buffers is None:
            self.root.buffers = [tables.Buffer()]
        return self.root.buffers

    @takes(index=WHOLE)
    def buffer_size(self, index: int, what: str = "A tensor") -> int:
        """Return the number of bytes of a buffer.

        Args:
            index: the buffer's index.
            what: the tensor that uses the buffer, as messages name it.

        Raises:
            ModelError: there is no such buffer.
        """
        if not 0 <= index < len(self._buffers):
            raise ModelError(f"{what} refers to buffer {index}; there are {len(self._buffers)} buffers so far.")
        data = self._buffers[index].data
        return 0 if data is None else data.size

    @takes(group=TEXT, data=BINARY, packing=TEXT)
    def add_external_buffer(self, group: str, data: bytes | NDArray[Any], packing: str = "") -> int:
        """Add constant data that `save` writes to a file beside the model, and return the id for tensors.

        Args:
            group: the file's name, relative to the model's folder. Buffers of the same group share a file.
            data: bytes, or an array whose bytes are used.
            packing: a description of how the values are packed; stored in the model.

        Raises:
            ModelError: the name is refused, as the file would lie outside of the model's folder, for instance.
        """
        return self._external.add(group, data, packing)

    @takes(id=WHOLE)
    def external_size(self, id: int, what: str = "A tensor") -> int:
        """Return the number of bytes of an external buffer.

        Args:
            id: the buffer's id.
            what: the tensor that uses the buffer, as messages name it.

        Raises:
            ModelError: there is no such buffer.
        """
        return self._external.size(id, what)

    def external_files(self) -> dict[str, bytes]:
        """Return the contents of the external files by name; empty if the model has no external buffers."""
        return self._external.files()

    @takes(op=OPERATOR, version=VERSION)
    def add_operator_code(self, op: BuiltinOperator | str, version: int = 1) -> int:
        """Return the index of an operator code, which is added if it is new; for `tables.Operator` that are made without a
        builder.
        """
        custom = ""
        if isinstance(op, str):
            op, custom = (BuiltinOperator[op], "") if op in BuiltinOperator.__members__ else (BuiltinOperator.CUSTOM, op)
        if not self._codes:
            self._restore_codes()
        index = self.operator_code(op, custom, version)
        self._kept_codes = list(self.root.operator_codes or [])
        return index

    def operator_code(self, op: BuiltinOperator, custom: str, version: int) -> int:
        """Return the index of an operator code, added if it is new; `custom` is a custom op's name, "" for built-in operators."""
        key = int(op), custom, version
        found = self._codes.get(key)
        if found is None:
            codes: list[tables.OperatorCode] = self.root.operator_codes  # type: ignore[assignment]  # a list since _restore_codes
            codes.append(make_operator_code(*key))
            found = self._codes[key] = len(codes) - 1
        return found

    def _restore_codes(self) -> None:
        """Remove the operator codes that were added for nodes by an earlier build."""
        self.root.operator_codes = list(self._kept_codes)
        self._codes = {}
        for index, code in enumerate(self._kept_codes):
            op = tables.operator_code(code)
            self._codes.setdefault((op, code.custom_code or "", code.version), index)

    @takes(key=TEXT, inputs=NAMES, outputs=NAMES, subgraph=_SUBGRAPH)
    def add_signature(
        self, key: str, inputs: Mapping[str, int], outputs: Mapping[str, int], subgraph: int | SubgraphBuilder = 0
    ) -> None:
        """Add a signature of a subgraph.

        Args:
            key: the signature's key.
            inputs: the tensor indices of its inputs, by name.
            outputs: the tensor indices of its outputs, by name.
            subgraph: the subgraph, by index or as its builder.

        Raises:
            ModelError: the key exists already, or the subgraph or a tensor does not exist.
        """
        index = subgraph.index if isinstance(subgraph, SubgraphBuilder) else subgraph
        if not 0 <= index < len(self.subgraphs):
            raise ModelError(f"Signature '{key}' refers to subgraph {index}; there are {len(self.subgraphs)} so far.")
        signatures = self.root.signature_defs = self.root.signature_defs or []
        if any(signature.signature_key == key for signature in signatures):
            raise ModelError(f"The model has a signature '{key}' already.")
        count = len(self.subgraphs[index].table.tensors or [])
        for role, names in (("input", inputs), ("output", outputs)):
            for name, tensor in names.items():
                if not 0 <= tensor < count:
                    raise ModelError(
                        f"Signature '{key}' has the {role} '{name}' at tensor {tensor}; its subgraph has {count} tensors so far."
                    )
        signatures.append(
            tables.SignatureDef(
                signature_key=key,
                inputs=[tables.TensorMap(name=n, tensor_index=i) for n, i in inputs.items()],
                outputs=[tables.TensorMap(name=n, tensor_index=i) for n, i in outputs.items()],
                subgraph_index=index,
            )
        )

    @takes(name=TEXT, data=BYTES)
    def add_metadata(self, name: str, data: bytes) -> None:
        """Add a metadata entry.

        Raises:
            ModelError: the name exists already.
        """
        entries = self.root.metadata = self.root.metadata or []
        if any(entry.name == name for entry in entries):
            raise ModelError(f"The model has metadata '{name}' already.")
        entries.append(tables.Metadata(name=name, buffer=self.add_buffer(data)))

    def settle(self) -> tables.Model:
        """Assign everything that depends on the whole model: operator codes, versions and the minimum runtime.

        Returns:
            The tables, ready to be written; more may be added afterwards.

        Raises:
            ModelError: there is no subgraph, or a subgraph has no inputs and outputs set.
        """
        if not self.subgraphs:
            raise ModelError("The model has no subgraph; add one with add_subgraph.")
        self._restore_codes()
        for subgraph in self.subgraphs:
            subgraph.settle()
        if self._minimum_runtime:
            set_minimum_runtime(self.root, self._runtime_versions)
        return self.root

    def build(self) -> Model:
        """Build the model as it is now, with operator codes and versions assigned.

        Raises:
            ModelError: there is no subgraph, or a subgraph has no inputs and outputs set.
        """
        return Model.from_bytes(self.to_bytes())

    def to_bytes(self, constants: Literal["inside", "outside"] | None = None) -> bytes:
        """Encode the model as the bytes of a .tflite file; `external_files` are the files of external buffers.

        Args:
            constants: "inside" the FlatBuffer or "outside", after it in the file; None to leave each where it is.
        """
        return Model(self.settle(), self._source, unknown=self._unknown, made_of=self._made_of).to_bytes(constants)

    def save(self, path: str | os.PathLike[str], constants: Literal["inside", "outside"] | None = None) -> None:
        """Write the model to a file, and those of its external buffers beside it.

        Args:
            path: the file.
            constants: "inside" the FlatBuffer or "outside", after it in the file; None to leave each where it is.

        Raises:
            ModelError: a file cannot be written, an external file exists with other contents, or its name is refused. Nothing is
                written in the last two cases.
        """
        from oplet.model.save.writing import save

        model = Model(self.settle(), self._source, os.fsdecode(path), self._unknown, made_of=self._made_of)
        save(model, path, constants, self._external.contents)


def _with_options(model: Model, operator: tables.Operator) -> tables.Operator:
    """Return the node, or a copy with its custom options in its table if the file has them after the FlatBuffer."""
    if operator.large_custom_options_offset <= 1:
        return operator
    operator = copy.copy(operator)
    operator.custom_options = np.frombuffer(model.custom_options(operator), np.uint8)
    operator.large_custom_options_offset = operator.large_custom_options_size = 0
    return operator
