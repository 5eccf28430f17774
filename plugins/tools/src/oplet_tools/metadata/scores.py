"""What metadata say of scores: the calibration that makes those of several classes comparable, and the least score of a result.

Numerics: mediapipe/tasks/cc/components/calculators/score_calibration_calculator.cc: scale / (1 + exp(-(slope * g(score) + offset))) with a
scale, slope and offset for each index, and a default for scores below the index's minimum and for indices without parameters.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oplet import Model
from oplet.errors import OpletError, TensorError
from oplet.texts import shown
from oplet_tools.metadata.labels import lines_of
from oplet_tools.metadata.tables import (
    AssociatedFileType,
    ScoreCalibrationOptions,
    ScoreThresholdingOptions,
    ScoreTransformationType,
    TensorMetadata,
    tensor_metadata,
)

__all__ = ["Calibration", "ScoreRules", "score_rules_of"]

#: The least score whose logarithm is taken; below it the curve goes on by its mirror image.
_LEAST = float(np.float32(1e-16))


class Calibration(NamedTuple):
    """Calibration of classification scores: a sigmoid with parameters of its own for each class."""

    file: str  #: The attached file with the parameters.
    transformation: ScoreTransformationType  #: The function that is applied to a score first, such as the logarithm.
    default: float  #: The result for scores without parameters, or below the minimum of theirs.
    #: Scale, slope, offset and minimum for each class, float64 of shape [classes, 4]; NaN for a class without any.
    parameters: NDArray[np.float64]

    def apply(self, scores: NDArray[Any], indices: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
        """Return the calibrated scores.

        Args:
            scores: scores, of any shape.
            indices: the class of each score, of the same shape; None if the position of a score is its class.
        """
        flat = scores.reshape(-1).astype(np.float64)
        places = np.arange(flat.size) if indices is None else indices.reshape(-1)
        none = np.full((1, 4), np.nan)
        known = (places >= 0) & (places < len(self.parameters))
        scale, slope, offset, least = np.concatenate([self.parameters, none])[np.where(known, places, -1)].T
        with np.errstate(all="ignore"):
            if self.transformation is ScoreTransformationType.LOG:
                flat = _log(flat)
            elif self.transformation is ScoreTransformationType.INVERSE_LOGISTIC:
                flat = _log(flat) - _log(1 - flat)
            at = flat * slope + offset
            found = np.clip(scale * np.where(at >= 0, 1 / (1 + np.exp(-at)), np.exp(at) / (1 + np.exp(at))), 0, scale)
        below = np.isnan(scale) | (scores.reshape(-1) < least)
        return np.where(below, self.default, found).reshape(scores.shape)


class ScoreRules(NamedTuple):
    """Calibration and threshold of an output's scores, by the model's metadata."""

    calibration: Calibration | None = None  #: The calibration, from an attached file; None for scores as they are.
    threshold: float | None = None  #: The score below which results are left out; None for none.

    def kept(self, scores: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which scores are not below the threshold; both are taken as float32, as in MediaPipe, so that an equal score stays."""
        if self.threshold is None:
            return np.ones(scores.shape, np.bool_)
        return ~np.asarray(scores.astype(np.float32) < np.float32(self.threshold))

    def __str__(self) -> str:
        """Return what is done to scores, in words; "" for nothing."""
        done = [] if self.calibration is None else [f"calibrated by '{shown(self.calibration.file)}'"]
        done += [] if self.threshold is None else [f"below {self.threshold:.6g} left out"]
        return ", ".join(done)


def score_rules_of(model: Model, subgraph: int, position: int) -> ScoreRules:
    """Return the calibration and threshold that the model's metadata have for the scores of an output.

    Args:
        subgraph: the subgraph's index.
        position: the output's position among the subgraph's outputs.

    Raises:
        TensorError: the metadata or the file of parameters are damaged, or the file is missing.
    """
    try:
        said = tensor_metadata(model, subgraph, position, output=True)
        calibration, threshold = None, None
        for unit in (said.process_units or ()) if said is not None else []:
            if isinstance(unit.options, ScoreThresholdingOptions):
                threshold = float(unit.options.global_score_threshold)
            elif isinstance(unit.options, ScoreCalibrationOptions) and said is not None:
                calibration = _calibration(model, said, unit.options)
        return ScoreRules(calibration, threshold)
    except (OpletError, UnicodeDecodeError, ValueError) as error:
        raise TensorError(
            f"What the metadata of {model.name} say of scores cannot be read, so they stay as they are: {str(error).rstrip('.')}."
        ) from error


def _calibration(model: Model, said: TensorMetadata, options: ScoreCalibrationOptions) -> Calibration:
    files = [each for each in said.associated_files or () if each.type == AssociatedFileType.TENSOR_AXIS_SCORE_CALIBRATION]
    if not files or not files[0].name:
        raise ValueError("they ask for a calibration and name no file with its parameters")
    name = files[0].name
    lines = lines_of(model, name)
    rows = np.full((len(lines), 4), np.nan)
    for number, line in enumerate(lines):
        numbers = [float(part) for part in line.split(",")] if line else []
        if numbers and (len(numbers) not in (3, 4) or numbers[0] < 0):
            raise ValueError(
                f"line {number + 1} of '{shown(name)}' is no scale (of 0 or more), slope and offset, with a minimum or none"
            )
        rows[number, : len(numbers)] = numbers
    transformation = options.score_transformation
    if not isinstance(transformation, ScoreTransformationType):
        raise ValueError(f"there is no transformation {transformation} of scores")
    return Calibration(name, transformation, float(options.default_score), rows)


def _log(values: NDArray[np.float64]) -> NDArray[np.float64]:
    mirrored: NDArray[np.float64] = 2 * np.log(_LEAST) - np.log(np.maximum(2 * _LEAST - values, _LEAST))
    return np.where(values < _LEAST, mirrored, np.log(np.maximum(values, _LEAST)))
