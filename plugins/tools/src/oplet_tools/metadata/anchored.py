"""Objects in the outputs of a detector that neither decodes nor selects its boxes, as MediaPipe's ObjectDetector finds them.

The model's custom metadata DETECTOR_METADATA (object_detector_metadata_schema.fbs, 1.0.0) have an anchor for each box, and how its numbers are
meant: MediaPipe's Model Maker writes them.

Numerics: mediapipe/calculators/tensor/tensors_to_detections_calculator.cc, mediapipe/calculators/util/non_max_suppression_calculator.cc.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oplet import Model
from oplet.errors import TensorError
from oplet.schema.decode import decode
from oplet.schema.table import Table, boolean, float32, int32, string, table, tables
from oplet_tools.metadata.tables import model_metadata

__all__ = ["NAME", "Anchored", "AnchoredBoxes", "anchored_in"]

#: The name of the custom metadata.
NAME = "DETECTOR_METADATA"
#: The largest overlap of two boxes that both stay: what MediaPipe's ObjectDetector keeps, measured, as no option of it has it.
MOST_SHARED = 0.3
#: The most boxes that stay: each is compared with all that are left, of which a stranger's model may have millions.
MOST_KEPT = 1000
Array = NDArray[Any]


class FixedAnchor(Table):
    """An anchor, in parts of the picture's size."""

    x_center: float = float32(0)
    y_center: float = float32(1)
    width: float = float32(2)
    height: float = float32(3)


class FixedAnchorsSchema(Table):
    """All anchors, in the order of the boxes."""

    anchors: list[FixedAnchor] | None = tables(0, FixedAnchor)


class SsdAnchorsOptions(Table):
    """The anchors."""

    fixed_anchors_schema: FixedAnchorsSchema | None = table(0, FixedAnchorsSchema)


class TensorsDecodingOptions(Table):
    """What the numbers of boxes and scores mean."""

    num_classes: int = int32(0)
    num_boxes: int = int32(1)
    num_coords: int = int32(2)
    keypoint_coord_offset: int = int32(3)
    num_keypoints: int = int32(4)
    num_values_per_keypoint: int = int32(5)
    x_scale: float = float32(6)
    y_scale: float = float32(7)
    w_scale: float = float32(8)
    h_scale: float = float32(9)
    apply_exponential_on_box_size: bool = boolean(10)
    sigmoid_score: bool = boolean(11)


class ObjectDetectorOptions(Table):
    """The root table."""

    min_parser_version: str | None = string(0)
    ssd_anchors_options: SsdAnchorsOptions | None = table(1, SsdAnchorsOptions)
    tensors_decoding_options: TensorsDecodingOptions | None = table(2, TensorsDecodingOptions)


class AnchoredBoxes(NamedTuple):
    """Boxes that were decoded."""

    boxes: Array  #: Left, top, right and bottom of each.
    classes: Array  #: The class of its highest score.
    scores: Array  #: That score.


class Anchored(NamedTuple):
    """How boxes are decoded."""

    anchors: Array  #: Centre y and x, height and width of each box's anchor, float32.
    scales: Array  #: By what the four numbers are divided, in that order.
    exponential: bool  #: Whether sizes are logarithms.
    sigmoid: bool  #: Whether scores are taken through the logistic function.

    def decode(self, codes: Array, scores: Array) -> AnchoredBoxes:
        """Return the boxes of the outputs, in their order."""
        count = len(self.anchors)
        numbers = codes.reshape(count, -1)[:, :4].astype(np.float32) / self.scales
        scores = scores.reshape(count, -1).astype(np.float32)
        with np.errstate(all="ignore"):
            scores = 1 / (1 + np.exp(-scores)) if self.sigmoid else scores
            centers = numbers[:, :2] * self.anchors[:, 2:] + self.anchors[:, :2]
            sizes = (np.exp(numbers[:, 2:]) if self.exponential else numbers[:, 2:]) * self.anchors[:, 2:]
            edges = np.concatenate([centers - sizes / 2, centers + sizes / 2], 1)[:, [1, 0, 3, 2]]
        best = np.where(np.isnan(scores), -np.inf, scores).argmax(1)
        return AnchoredBoxes(edges.astype(np.float64), best, scores[np.arange(count), best].astype(np.float64))


def apart(boxes: Array) -> list[int]:
    """Return the indices of boxes, sorted best first, that do not overlap too much with a better one that stays, whatever their classes;
    the first 1,000.
    """
    order = np.arange(len(boxes))
    kept: list[int] = []
    with np.errstate(all="ignore"):
        areas = np.prod(boxes[:, 2:] - boxes[:, :2], 1)
        while order.size and len(kept) < MOST_KEPT:
            best, order = int(order[0]), order[1:]
            kept.append(best)
            sides = np.minimum(boxes[best, 2:], boxes[order, 2:]) - np.maximum(boxes[best, :2], boxes[order, :2])
            shared = np.prod(np.maximum(sides, 0), 1)
            order = order[~(shared > MOST_SHARED * (areas[best] + areas[order] - shared))]
    return kept


def anchored_in(model: Model, subgraph: int, codes: tuple[int, ...], scores: tuple[int, ...]) -> Anchored | None:
    """Return how a model's boxes are decoded; None if its metadata have no DETECTOR_METADATA.

    Args:
        subgraph: the subgraph's index.
        codes: the shape of the output of boxes.
        scores: the shape of the output of scores.

    Raises:
        ModelError: the metadata are damaged.
        TensorError: they do not fit the outputs.
    """
    said = model_metadata(model)
    graphs = (said.subgraph_metadata or ()) if said is not None else ()
    found = (graphs[subgraph].custom_metadata or ()) if subgraph < len(graphs) else ()
    data = next((each.data for each in found if each.name == NAME and each.data is not None), None)
    if data is None:
        return None
    options = decode(ObjectDetectorOptions, np.ascontiguousarray(data, np.uint8).data, NAME)
    decoding, listed = options.tensors_decoding_options, options.ssd_anchors_options
    fixed = listed.fixed_anchors_schema if listed is not None else None
    anchors = (
        [[each.y_center, each.x_center, each.height, each.width] for each in (fixed.anchors or ())] if fixed is not None else []
    )
    if decoding is None or codes != (1, len(anchors), decoding.num_coords) or scores != (1, len(anchors), decoding.num_classes):
        raise TensorError(
            f"{NAME} in the metadata of {model.name} has {len(anchors)} anchors for boxes of shape {list(codes)} with scores of shape "
            f"{list(scores)}, which it does not fit, so that no objects are shown."
        )
    scales = np.array([decoding.y_scale, decoding.x_scale, decoding.h_scale, decoding.w_scale], np.float32)
    if not anchors or decoding.num_coords < 4 or decoding.num_classes < 1 or not np.all(np.isfinite(scales) & (scales != 0)):
        raise TensorError(
            f"{NAME} in the metadata of {model.name} gives no usable numbers for boxes, so that no objects are shown."
        )
    return Anchored(np.array(anchors, np.float32), scales, decoding.apply_exponential_on_box_size, decoding.sigmoid_score)
