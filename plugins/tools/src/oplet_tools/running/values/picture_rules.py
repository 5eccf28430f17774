"""What a model's file says of the pictures that it takes: by its TFLITE_METADATA, or as ultralytics' models take them."""

from __future__ import annotations

from typing import NamedTuple

from oplet import Model
from oplet.errors import OpletError, TensorError
from oplet_tools.metadata.tables import ColorSpaceType, ImageProperties, tensor_metadata
from oplet_tools.metadata.ultralytics import ultralytics_of
from oplet_tools.running.values.normalization import Normalization, normalization_of

__all__ = ["METADATA", "PictureRules", "picture_rules_of"]

#: Who says it, in messages.
METADATA, ULTRALYTICS = "as the model's metadata say", "as ultralytics' models take pictures"
#: The grey that ultralytics fills up with, and tasks whose pictures are fitted so; classifiers take the middle.
_GREY, _FITTED = 114, ("detect", "segment", "pose", "obb")


class PictureRules(NamedTuple):
    """The preprocessing of pictures that a model's file prescribes for an input.

    Attributes:
        normalization: real = (pixel - mean) / std; None if not given.
        greyscale: whether pictures are grey, also where the input has three channels.
        size: height and width for dimensions that the input leaves free; None if not given.
        resize: how a picture of other proportions is fitted, "stretch", "crop" or "pad"; "" if not given.
        fill: the value of the pixels that padding adds.
        filter: the resampling filter, one of `Preprocessing.filter`, "linear" (between the nearest four pixels) or "corner"
            (MediaPipe's); "" if not given.
        source: where these rules come from, in words.
    """

    normalization: Normalization | None = None
    greyscale: bool = False
    size: tuple[int, int] | None = None
    resize: str = ""
    fill: int = 0
    filter: str = ""
    source: str = METADATA


def picture_rules_of(model: Model, subgraph: int, position: int) -> PictureRules:
    """Return the preprocessing of pictures that the model's file prescribes for an input.

    Args:
        model: the model.
        subgraph: the subgraph's index.
        position: the input's position among the subgraph's inputs.

    Raises:
        TensorError: the metadata are damaged, or their means or standard deviations cannot be used.
    """
    try:
        said = tensor_metadata(model, subgraph, position)
    except OpletError as error:
        raise TensorError(_unread(error)) from error
    normalization = normalization_of(said)
    try:
        exported = None if position else ultralytics_of(model)
    except OpletError as error:
        if said is None:
            raise TensorError(_unread(error)) from error
        exported = None
    content = said.content.content_properties if said is not None and said.content is not None else None
    rules = PictureRules(normalization)
    if isinstance(content, ImageProperties):
        size = content.default_size
        fixed = (size.height, size.width) if size is not None and size.height and size.width else None
        rules = PictureRules(normalization, content.color_space == ColorSpaceType.GRAYSCALE, fixed, filter="corner")
    if exported is None:
        return rules
    square = exported.size is None or exported.size[0] == exported.size[1]
    classifies = exported.task == "classify"
    return PictureRules(
        normalization or Normalization((0.0,), (255.0,)),
        rules.greyscale,
        rules.size or exported.size,
        "pad" if exported.task in _FITTED else ("crop" if square else "stretch") if classifies else "",
        _GREY,
        "linear" if exported.task in _FITTED else "bilinear" if classifies else "",
        ULTRALYTICS,
    )


def _unread(error: OpletError) -> str:
    return (
        f"The model's metadata, which may say what becomes of pictures, cannot be read: {str(error).rstrip('.')}; "
        "give --scale and --offset."
    )
