""".tflite models on Ray: `map_dataset` for datasets of Ray Data, `deployment` for Ray Serve.

`oplet.ray` is this module, where it is installed. Models run in an `oplet.Predictor` in each worker process; the packages of the model's
operators must be installed there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oplet_ray.dataset import map_dataset
from oplet_ray.predict_batches import PredictBatches

if TYPE_CHECKING:
    from oplet_ray.serving import deployment

__all__ = ["PredictBatches", "deployment", "map_dataset"]


def __getattr__(name: str) -> Any:
    if name == "deployment":  # Ray Serve is an extra
        from oplet_ray.serving import deployment

        return deployment
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
