"""The tables of TFLite's metadata schema (`metadata_schema.fbs`) that oplet reads, and their decoder.

They are in the model's metadata entry TFLITE_METADATA, as a FlatBuffer of their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet import Model
from oplet.schema.decode import decode
from oplet.schema.table import Table, int8, string, tables, union, vector

__all__ = [
    "AXIS_LABELS",
    "ENTRY",
    "VALUE_LABELS",
    "AssociatedFile",
    "ModelMetadata",
    "NormalizationOptions",
    "ProcessUnit",
    "SubGraphMetadata",
    "TensorMetadata",
    "tensor_metadata",
]

#: The name of the metadata entry.
ENTRY = "TFLITE_METADATA"
#: AssociatedFileType: a label for each index along an axis, such as the classes of a classifier.
AXIS_LABELS = 2
#: The same: a label for each value of a tensor, such as the classes that a detector finds.
VALUE_LABELS = 3


class AssociatedFile(Table):
    """A file of the archive that is appended to the model."""

    name: str | None = string(0)
    type: int = int8(2)


class NormalizationOptions(Table):
    """Means and standard deviations of pixels: one, or one for each channel."""

    mean: NDArray[np.float32] | None = vector(0, "float32")
    std: NDArray[np.float32] | None = vector(1, "float32")


class ProcessUnit(Table):
    """A preprocessing step; only normalization is declared here."""

    options: Table | None = union(1, {1: NormalizationOptions})


class TensorMetadata(Table):
    """Metadata of an input or output."""

    name: str | None = string(0)
    process_units: list[ProcessUnit] | None = tables(4, ProcessUnit)
    associated_files: list[AssociatedFile] | None = tables(6, AssociatedFile)


class SubGraphMetadata(Table):
    """Metadata of a subgraph; its inputs and outputs are in the model's order."""

    input_tensor_metadata: list[TensorMetadata] | None = tables(2, TensorMetadata)
    output_tensor_metadata: list[TensorMetadata] | None = tables(3, TensorMetadata)


class ModelMetadata(Table):
    """The root table of the metadata."""

    subgraph_metadata: list[SubGraphMetadata] | None = tables(3, SubGraphMetadata)


def tensor_metadata(model: Model, subgraph: int, position: int, *, output: bool = False) -> TensorMetadata | None:
    """Return the metadata of an input or output; None if there are none.

    Args:
        model: the model.
        subgraph: the subgraph's index.
        position: the tensor's position among the subgraph's inputs or outputs.
        output: whether it is an output.

    Raises:
        ModelError: the metadata are damaged.
    """
    content: NDArray[Any] | None = model.metadata(ENTRY)
    if content is None:
        return None
    said = decode(ModelMetadata, np.ascontiguousarray(content, np.uint8).data, ENTRY)
    graphs = said.subgraph_metadata or []
    if subgraph >= len(graphs):
        return None
    graph = graphs[subgraph]
    tensors = (graph.output_tensor_metadata if output else graph.input_tensor_metadata) or []
    return tensors[position] if position < len(tensors) else None
