"""`map_dataset`: runs a model over a Ray Data dataset."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from oplet_ray.predict_batches import PredictBatches

if TYPE_CHECKING:
    from ray.data import Dataset

__all__ = ["map_dataset"]


def map_dataset(
    dataset: Dataset,
    model: str | os.PathLike[str] | bytes,
    *,
    inputs: Mapping[str, str] | None = None,
    outputs: Mapping[str, str] | None = None,
    keep: Sequence[str] | None = None,
    errors: Literal["raise", "column"] = "raise",
    workers: int | tuple[int, int] = 1,
    batch_size: int = 64,
    num_cpus: float | None = None,
    num_gpus: float | None = None,
    ray_options: Mapping[str, Any] | None = None,
    **predictor: Any,
) -> Dataset:
    """Return the dataset with one more column for each output of a model.

    Nothing runs before the result is consumed. A worker that dies is started again and its batches are run again, so that none is
    lost and none comes twice; the order is that of the dataset where its execution options preserve it.

    Args:
        dataset: the dataset.
        model: the model's path, which each node of the cluster must have, or its bytes.
        inputs: the column of each input, by the input's name; None for columns of the inputs' names, or, for one input, the only
            column.
        outputs: the name of the new column of each output; None for the outputs' names.
        keep: the columns of the dataset to keep; None for all.
        errors: "raise" ends the job at a row that cannot be run; "column" adds a column `error`, which is "" for rows that ran.
        workers: the number of actors, or the smallest and the largest number.
        batch_size: rows in a batch; the interpreter runs as many of them at a time as suits the model, see `oplet.Predictor`.
        num_cpus: processors that each actor reserves; by default half of its `num_threads`, as reading and preparing rows needs
            some too: actors that reserve all of a machine would wait for rows for ever.
        num_gpus: GPUs that each actor reserves.
        ray_options: further options of `Dataset.map_batches`, such as `resources` or `max_concurrency`.
        predictor: the further arguments of `oplet.Predictor`: delegates, num_threads, signature, limits, plugins, prefer, batch.

    Raises:
        ModelError, DelegateError, TensorError: an argument of the Predictor is wrong.
        ValueError: `workers` is no positive number or pair.
    """
    from ray.data import ActorPoolStrategy

    smallest, largest = workers if isinstance(workers, tuple) else (workers, workers)
    if not 1 <= smallest <= largest:
        raise ValueError(f"workers is {workers}; it must be a positive number, or the smallest and the largest one.")
    arguments = {"inputs": inputs, "outputs": outputs, "keep": keep, "errors": errors, **predictor}
    PredictBatches(model, **arguments)  # refuses wrong arguments here, not in a worker
    options = {
        # An actor that was killed starts anew, and what it had been given is given again.
        "max_restarts": -1,
        "max_task_retries": -1,
        **(ray_options or {}),
    }
    return dataset.map_batches(
        PredictBatches,
        fn_constructor_args=(model if isinstance(model, bytes) else os.path.abspath(model),),
        fn_constructor_kwargs=arguments,
        batch_size=batch_size,
        batch_format="numpy",
        compute=ActorPoolStrategy(min_size=smallest, max_size=largest),
        num_cpus=0.5 * predictor.get("num_threads", 1) if num_cpus is None else num_cpus,
        num_gpus=num_gpus,
        **options,
    )
