"""Objects that a detector found in a run, with boxes in the pixels of the picture that was given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from numpy.typing import NDArray

from oplet import Model
from oplet_tools.metadata.detections import Detection, Detector, detector_of
from oplet_tools.metadata.output_rules import Reporter
from oplet_tools.running.values.notices import Notice

__all__ = ["Objects", "PictureInput", "detector_in", "objects_in", "picture_input"]

Array = NDArray[Any]


class Objects(NamedTuple):
    """The objects that a run of an object-detection model found."""

    unit: str  #: "pixels" if boxes are in pixels of the picture, "parts" if in fractions of the input's width and height.
    found: list[Detection]  #: The objects, the highest score first.
    points: str = ""  #: The meaning of the objects' points: "corners" of rotated boxes, "keypoints", or "" for none.

    def as_dict(self) -> dict[str, Any]:
        """Return the objects as a dictionary, for JSON."""
        return {"unit": self.unit, "found": list(map(self._as_dict, self.found))}

    def _as_dict(self, one: Detection) -> dict[str, Any]:
        told = {"label": one.label, "number": one.number, "score": one.score, "box": list(one.box)}
        return {**told, self.points: list(map(list, one.points))} if self.points else told


class PictureInput(NamedTuple):
    """The input of a model that takes a picture."""

    name: str
    channels_first: bool  #: Whether its layout is NCHW; otherwise NHWC.


def picture_input(inputs: Mapping[str, Mapping[str, Any]]) -> PictureInput | None:
    """Return the first input that can take a picture, given the inputs' details by name; None if there is none."""
    for name, details in inputs.items():
        shape = [int(dim) for dim in details["shape"]]
        if len(shape) == 4 and shape[0] == 1 and (shape[3] in (1, 3) or shape[1] in (1, 3)):
            return PictureInput(name, shape[3] not in (1, 3))
    return None


def detector_in(
    model: Model,
    subgraph: int,
    inputs: Mapping[str, Mapping[str, Any]],
    outputs: Mapping[str, Mapping[str, Any]],
    reporter: Reporter,
    *,
    locale: str = "",
) -> Detector | None:
    """Return the format of the outputs of an object-detection model that takes a picture; None for other models.

    Args:
        subgraph: the index of the subgraph that runs.
        inputs: details of the inputs, by name.
        outputs: details of the outputs, by name.
        reporter: receives messages on which metadata are used.
        locale: the language of labels; "" for the first in the metadata.
    """
    picture = picture_input(inputs)
    if picture is None:
        return None
    shapes = {int(each["index"]): (name, tuple(int(dim) for dim in each["shape"])) for name, each in outputs.items()}
    return detector_of(model, subgraph, shapes, picture.channels_first, reporter, locale=locale)


def objects_in(
    detector: Detector, picture: PictureInput, given: Array, notices: Sequence[Notice], outputs: Mapping[int, Array]
) -> Objects:
    """Return the objects of a run.

    Args:
        detector: the format of the outputs.
        picture: the input that takes the picture.
        given: the value of this input.
        notices: notices of what was done to inputs; they have the area of the picture that was resized to the input.
        outputs: real values of the outputs, by tensor index.
    """
    height, width = given.shape[-2:] if picture.channels_first else given.shape[-3:-1]
    areas = [each.facts["area"] for each in notices if each.input == picture.name and "area" in each.facts]
    left, top, right, bottom = areas[0] if areas else (0, 0, 1, 1)
    sides = [each.facts["sides"] for each in notices if each.input == picture.name and "sides" in each.facts]
    exported = detector.exported
    # As ultralytics has it, nothing but a turned box leads out of the picture.
    most = tuple(sides[0] if sides else (1, 1)) if exported is not None and not exported.turned else None

    def placed(point: Sequence[float]) -> tuple[float, ...]:
        x, y = left + point[0] * (right - left), top + point[1] * (bottom - top)
        return (x, y, *point[2:]) if most is None else (min(max(x, 0), most[0]), min(max(y, 0), most[1]), *point[2:])

    found = []
    shown = (bottom - top, right - left) if areas else None
    for each in detector.read(outputs, (height, width), shown):
        (a, b), (c, d) = placed(each.box[:2]), placed(each.box[2:])
        found.append(each._replace(box=(a, b, c, d), points=tuple(map(placed, each.points))))
    points = "" if exported is None else "corners" if exported.turned else "keypoints" if exported.keypoints[0] else ""
    return Objects("pixels" if areas else "parts", found, points)
