"""The tables of TFLite's metadata schema (`metadata_schema.fbs`, 1.5.0), all of them, under the schema's names.

They are in the model's metadata entry TFLITE_METADATA, as a FlatBuffer of their own.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet import Model
from oplet.schema.decode import decode
from oplet.schema.table import Table, enum, float32, int32, string, strings, table, tables, uint32, union, vector

__all__ = [
    "ENTRY",
    "IDENTIFIER",
    "AssociatedFile",
    "AssociatedFileType",
    "AudioProperties",
    "BertTokenizerOptions",
    "BoundingBoxProperties",
    "BoundingBoxType",
    "ColorSpaceType",
    "Content",
    "CoordinateType",
    "CustomMetadata",
    "FeatureProperties",
    "ImageProperties",
    "ImageSize",
    "ModelMetadata",
    "NormalizationOptions",
    "ProcessUnit",
    "RegexTokenizerOptions",
    "ScoreCalibrationOptions",
    "ScoreThresholdingOptions",
    "ScoreTransformationType",
    "SentencePieceTokenizerOptions",
    "Stats",
    "SubGraphMetadata",
    "TensorGroup",
    "TensorMetadata",
    "ValueRange",
    "model_metadata",
    "tensor_metadata",
]

#: The name of the metadata entry, and the file identifier of its FlatBuffer.
ENTRY, IDENTIFIER = "TFLITE_METADATA", b"M001"


class AssociatedFileType(IntEnum):
    """The purpose of an attached file, such as labels or a vocabulary."""

    UNKNOWN = 0
    DESCRIPTIONS = 1
    TENSOR_AXIS_LABELS = 2
    TENSOR_VALUE_LABELS = 3
    TENSOR_AXIS_SCORE_CALIBRATION = 4
    VOCABULARY = 5
    SCANN_INDEX_FILE = 6


class ColorSpaceType(IntEnum):
    """The color space of a picture."""

    UNKNOWN = 0
    RGB = 1
    GRAYSCALE = 2


class BoundingBoxType(IntEnum):
    """The meaning of a box's four numbers: left, top, right, bottom; or left, top, width, height; or centre x, centre y, width, height."""

    UNKNOWN = 0
    BOUNDARIES = 1
    UPPER_LEFT = 2
    CENTER = 3


class CoordinateType(IntEnum):
    """The unit of a box's numbers: fractions of the picture's size, or pixels."""

    RATIO = 0
    PIXEL = 1


class ScoreTransformationType(IntEnum):
    """The function applied to a score before calibration: x, log(x), or log(x) - log(1 - x)."""

    IDENTITY = 0
    LOG = 1
    INVERSE_LOGISTIC = 2


class AssociatedFile(Table):
    """A file of the archive that is appended to the model."""

    name: str | None = string(0)
    description: str | None = string(1)
    type: AssociatedFileType = enum(2, AssociatedFileType)
    locale: str | None = string(3)
    version: str | None = string(4)


class FeatureProperties(Table):
    """Content of a tensor: plain numbers."""


class ImageSize(Table):
    """The size of a picture, in pixels."""

    width: int = uint32(0)
    height: int = uint32(1)


class ImageProperties(Table):
    """Content of a tensor: a picture; the size is for dimensions that the shape leaves free."""

    color_space: ColorSpaceType = enum(0, ColorSpaceType)
    default_size: ImageSize | None = table(1, ImageSize)


class BoundingBoxProperties(Table):
    """Content of a tensor: boxes. `index` is the position of each of the four numbers in the order of `BoundingBoxType`; empty
    for that order.
    """

    index: NDArray[np.uint32] | None = vector(0, "uint32")
    type: BoundingBoxType = enum(1, BoundingBoxType)
    coordinate_type: CoordinateType = enum(2, CoordinateType)


class AudioProperties(Table):
    """Content of a tensor: sound; the sample rate is in Hz."""

    sample_rate: int = uint32(0)
    channels: int = uint32(1)


class ValueRange(Table):
    """The first and the last dimension of a tensor that a content occupies."""

    min: int = int32(0)
    max: int = int32(1)


class Content(Table):
    """The kind of a tensor's values, and the dimensions that hold one such value (None for all but the batch)."""

    content_properties: Table | None = union(
        1, {1: FeatureProperties, 2: ImageProperties, 3: BoundingBoxProperties, 4: AudioProperties}
    )
    range: ValueRange | None = table(2, ValueRange)


class NormalizationOptions(Table):
    """Options of normalization: means and standard deviations, one or one for each channel."""

    mean: NDArray[np.float32] | None = vector(0, "float32")
    std: NDArray[np.float32] | None = vector(1, "float32")


class ScoreCalibrationOptions(Table):
    """Options of score calibration by a sigmoid for each class, with parameters in an attached file."""

    score_transformation: ScoreTransformationType = enum(0, ScoreTransformationType)
    default_score: float = float32(1)


class ScoreThresholdingOptions(Table):
    """Options of score thresholding: results with lower scores are left out."""

    global_score_threshold: float = float32(0)


class BertTokenizerOptions(Table):
    """Options of a BERT tokenizer that converts text to the input."""

    vocab_file: list[AssociatedFile] | None = tables(0, AssociatedFile)


class SentencePieceTokenizerOptions(Table):
    """Options of a SentencePiece tokenizer that converts text to the input."""

    sentencePiece_model: list[AssociatedFile] | None = tables(0, AssociatedFile)
    vocab_file: list[AssociatedFile] | None = tables(1, AssociatedFile)


class RegexTokenizerOptions(Table):
    """Options of a tokenizer that splits text at a regular expression, and looks the parts up in a vocabulary."""

    delim_regex_pattern: str | None = string(0)
    vocab_file: list[AssociatedFile] | None = tables(1, AssociatedFile)


class ProcessUnit(Table):
    """A step of pre- or postprocessing."""

    options: Table | None = union(
        1,
        {
            1: NormalizationOptions,
            2: ScoreCalibrationOptions,
            3: ScoreThresholdingOptions,
            4: BertTokenizerOptions,
            5: SentencePieceTokenizerOptions,
            6: RegexTokenizerOptions,
        },
    )


class Stats(Table):
    """The largest and smallest values of a tensor: one, or one for each channel."""

    max: NDArray[np.float32] | None = vector(0, "float32")
    min: NDArray[np.float32] | None = vector(1, "float32")


class TensorGroup(Table):
    """Tensors, by the names in their metadata, that belong together."""

    name: str | None = string(0)
    tensor_names: list[str] | None = strings(1)


class TensorMetadata(Table):
    """Metadata of an input or output."""

    name: str | None = string(0)
    description: str | None = string(1)
    dimension_names: list[str] | None = strings(2)
    content: Content | None = table(3, Content)
    process_units: list[ProcessUnit] | None = tables(4, ProcessUnit)
    stats: Stats | None = table(5, Stats)
    associated_files: list[AssociatedFile] | None = tables(6, AssociatedFile)


class CustomMetadata(Table):
    """Metadata in another schema, under a name."""

    name: str | None = string(0)
    data: NDArray[np.uint8] | None = vector(1, "uint8")


class SubGraphMetadata(Table):
    """Metadata of a subgraph; its inputs and outputs are listed in the model's order."""

    name: str | None = string(0)
    description: str | None = string(1)
    input_tensor_metadata: list[TensorMetadata] | None = tables(2, TensorMetadata)
    output_tensor_metadata: list[TensorMetadata] | None = tables(3, TensorMetadata)
    associated_files: list[AssociatedFile] | None = tables(4, AssociatedFile)
    input_process_units: list[ProcessUnit] | None = tables(5, ProcessUnit)
    output_process_units: list[ProcessUnit] | None = tables(6, ProcessUnit)
    input_tensor_groups: list[TensorGroup] | None = tables(7, TensorGroup)
    output_tensor_groups: list[TensorGroup] | None = tables(8, TensorGroup)
    custom_metadata: list[CustomMetadata] | None = tables(9, CustomMetadata)


class ModelMetadata(Table):
    """The root table of the metadata."""

    name: str | None = string(0)
    description: str | None = string(1)
    version: str | None = string(2)
    subgraph_metadata: list[SubGraphMetadata] | None = tables(3, SubGraphMetadata)
    author: str | None = string(4)
    license: str | None = string(5)
    associated_files: list[AssociatedFile] | None = tables(6, AssociatedFile)
    min_parser_version: str | None = string(7)


def model_metadata(model: Model) -> ModelMetadata | None:
    """Return the TFLITE_METADATA of a model; None if it has none.

    Raises:
        ModelError: the metadata are damaged.
    """
    content: NDArray[Any] | None = model.metadata(ENTRY)
    return None if content is None else decode(ModelMetadata, np.ascontiguousarray(content, np.uint8).data, ENTRY)


def tensor_metadata(model: Model, subgraph: int, position: int, *, output: bool = False) -> TensorMetadata | None:
    """Return the metadata of an input or output; None if there are none.

    Args:
        subgraph: the subgraph's index.
        position: the tensor's position among the subgraph's inputs or outputs.
        output: whether it is an output.

    Raises:
        ModelError: the metadata are damaged.
    """
    said = model_metadata(model)
    graphs = (said.subgraph_metadata or ()) if said is not None else []
    if subgraph >= len(graphs):
        return None
    graph = graphs[subgraph]
    tensors = (graph.output_tensor_metadata if output else graph.input_tensor_metadata) or ()
    return tensors[position] if position < len(tensors) else None
