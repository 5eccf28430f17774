"""Models with metadata and attached files, as TFLite's metadata tools make them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence

import flatbuffers
import numpy as np

from oplet import ModelBuilder

__all__ = ["archive", "classifier", "metadata"]

LABELS = 2


def metadata(
    mean: Sequence[float] = (),
    std: Sequence[float] = (),
    files: Sequence[tuple[str, int]] = (("labels.txt", LABELS),),
    outputs: int = 1,
    of: int = 0,
) -> bytes:
    """TFLITE_METADATA of a model with one input.

    Args:
        mean: means of pixels; with none there is no normalization.
        std: standard deviations.
        files: names and types of the files that belong to an output.
        outputs: the number of outputs.
        of: the output that the files belong to.
    """
    builder = flatbuffers.Builder()

    def table(fields: Mapping[int, int], numbers: Mapping[int, int] | None = None) -> int:
        builder.StartObject(8)
        for slot, offset in fields.items():
            builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
        for slot, number in (numbers or {}).items():
            builder.PrependInt8Slot(slot, number, 0)
        return builder.EndObject()

    def tables(*offsets: int) -> int:
        builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            builder.PrependUOffsetTRelative(offset)
        return builder.EndVector()

    attached = []
    for name, kind in files:
        text = builder.CreateString(name)
        attached.append(table({0: text}, {2: kind}))
    listed = tables(*attached)
    told = [table({6: listed} if place == of else {}) for place in range(outputs)]
    if mean or std:
        numbers = [builder.CreateNumpyVector(np.array(each, np.float32)) for each in (mean, std)]
        unit = table({1: table(dict(enumerate(numbers)))}, {0: 1})
        given = table({4: tables(unit)})
    else:
        given = table({})
    graph = table({2: tables(given), 3: tables(*told)})
    builder.Finish(table({3: tables(graph)}), b"M001")
    return bytes(builder.Output())


def archive(files: Mapping[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    """A zip archive."""
    into = io.BytesIO()
    with zipfile.ZipFile(into, "w", method) as written:
        for name, content in files.items():
            written.writestr(zipfile.ZipInfo(name), content, method)
    return into.getvalue()


def classifier(said: bytes | None, attached: bytes = b"") -> bytes:
    """A model that gives the mean of each channel of a picture of 2 x 2 as a score."""
    builder = ModelBuilder()
    main = builder.add_subgraph()
    x = main.add_tensor("image", "float32", [1, 2, 2, 3])
    axes = main.add_tensor("axes", "int32", [2], data=np.array([1, 2], np.int32))
    y = main.add_tensor("scores", "float32", [1, 3])
    main.add_operator("MEAN", [x, axes], [y])
    main.set_inputs(x)
    main.set_outputs(y)
    if said is not None:
        builder.add_metadata("TFLITE_METADATA", said)
    return builder.to_bytes() + attached
