"""The MLServer runtime of .tflite models."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
from mlserver import MLModel, ModelSettings
from mlserver.types import (
    InferenceRequest,
    InferenceResponse,
    MetadataModelResponse,
    MetadataTensor,
    Parameters,
    RequestInput,
    ResponseOutput,
    TensorData,
)
from mlserver.utils import get_model_uri
from numpy.typing import NDArray

from oplet.errors import OpletError, TensorError
from oplet_serve.doors.threads import WorkerThreads
from oplet_serve.options import Options
from oplet_serve.queueing import RequestQueue
from oplet_serve.refusals import LARGE, NO_MEMORY, Refusal, check_count, refusal_of
from oplet_serve.served_model import ServedModel
from oplet_serve.state.sequences import Sequences, Step, step_of
from oplet_serve.values.slices import SMALL
from oplet_serve.values.tensors import TensorSpec, as_json, nbytes_of, read_tensor, weight_of

__all__ = ["ArrayRequest", "OpletRuntime"]

Array = NDArray[Any]

_PLATFORM = "oplet_tflite"
#: Seconds that a request waits for others, where rows are joined and nothing is said of it.
_BATCH_TIME = 0.002


class ArrayRequest(InferenceRequest):  # type: ignore[misc, unused-ignore]
    """An inference request whose response may hold numpy arrays in `data`, where MLServer's have lists."""


class OpletRuntime(MLModel):  # type: ignore[misc, unused-ignore]
    """A .tflite model in MLServer, named `oplet_serve.OpletRuntime` as the `implementation` of a model-settings.json.

    `parameters.uri` is the file, `parameters.extra` has the options of `oplet_serve.options.Options`; with `max_batch_size` above
    1, rows of requests that come within `max_batch_time` seconds are run together where the model takes batches. MLServer's own
    batching is not used, as one bad request would fail its whole batch. Predictions run in threads.

    Args:
        settings: the model's settings.

    Raises:
        ModelError: an option is unknown or has an invalid value.
    """

    def __init__(self, settings: ModelSettings) -> None:
        parameters = settings.parameters
        self._options = Options.read(settings.name, parameters.extra if parameters else None)
        self._batch_size = max(settings.max_batch_size, 1)
        # 0 is a time as good as others, and MLServer's own default.
        self._batch_time = settings.max_batch_time if "max_batch_time" in settings.model_fields_set else _BATCH_TIME
        self._model: ServedModel | None = None
        self._queue: RequestQueue
        self._sequences: Sequences
        #: Where large requests are read, of all models; None where the model's own threads do it.
        self.readers: WorkerThreads | None = None
        super().__init__(settings.model_copy(update={"max_batch_size": 0, "max_batch_time": 0.0}))

    async def load(self) -> bool:
        """Open the model.

        Raises:
            OpletError: the model cannot be opened.
        """
        path = await get_model_uri(self._settings, wellknown_filenames=["model.tflite"])
        model = await asyncio.to_thread(ServedModel, path, self._options, self._batch_size)
        joined = model.batch_size if self._batch_size > 1 else 1
        self._queue = RequestQueue(self.name, model.run, self._options.workers, self._options.max_queue, joined, self._batch_time)
        self._model, self._sequences = model, Sequences.of(path, self._options, model)
        self.inputs, self.outputs = _described(model.inputs.values()), _described(model.outputs.values())
        return True

    def served(self) -> ServedModel:
        """Return the open model.

        Raises:
            Refusal: it is not loaded, or not any more.
        """
        if self._model is None:
            raise Refusal(f"The model '{self.name}' is not loaded.")
        return self._model

    async def metadata(self) -> MetadataModelResponse:
        """Return the names, datatypes and shapes of the model's inputs and outputs; -1 for sizes that may vary."""
        made = MetadataModelResponse.model_construct(
            name=self.name,
            platform=_PLATFORM,
            inputs=self.inputs,
            outputs=self.outputs,
            versions=[self.version] if self.version else [],
        )
        states = self._model.states if self._model is not None else {}
        told = {"signature": self._options.signature, "state": ", ".join(states)}
        made.parameters = Parameters(**{name: value for name, value in told.items() if value}) if any(told.values()) else None
        return made

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """Run the model.

        Args:
            payload: the request.

        Raises:
            Refusal: the request cannot be served, with the reason in one sentence.
        """
        model, queue, sequences = self.served(), self._queue, self._sequences
        queue.enter()
        try:
            step = step_of(payload.parameters)
            wanted = self._wanted(model, payload, step)
            arrays = isinstance(payload, ArrayRequest)
            large = sum(weight_of(_data_of(tensor)) for tensor in payload.inputs) > SMALL
            if large:
                values = await queue.in_thread(self._read, model, payload, large=True, threads=self.readers)
            else:  # sooner than a thread would have begun
                values = self._read(model, payload)
            if step is None:
                made = await queue.outputs(values, model.rows_of(values), large)
            else:
                made = await sequences.run(step, model, values, wanted, queue, large)
            if arrays or sum(map(nbytes_of, made.values())) <= SMALL:
                return self._response(made, wanted, arrays)
            return await queue.in_thread(self._response, made, wanted, arrays, large=True)
        except OpletError as error:
            raise refusal_of(error, model.path, self.name) from error
        except MemoryError:
            raise Refusal(str(NO_MEMORY), LARGE) from None
        finally:
            queue.leave()

    async def unload(self) -> bool:
        """Close the model once requests in progress have finished."""
        model, self._model = self._model, None
        if model is not None:
            while self._queue.busy:
                await asyncio.sleep(0.01)
            self._queue.close()
            self._sequences.leave(model)
            await asyncio.to_thread(model.close)
        return True

    @property
    def busy(self) -> bool:
        """Return whether requests are in progress."""
        return self._model is not None and self._queue.busy

    def _wanted(self, model: ServedModel, payload: InferenceRequest, step: Step | None) -> list[str]:
        """Return the names of the requested outputs; all if the request names none, in a sequence without its state."""
        check_count("outputs", len(payload.outputs or ()), len(model.outputs))
        check_count("inputs", len(payload.inputs), len(model.inputs))
        names = [output.name for output in payload.outputs or ()]
        for name in names:
            if name not in model.outputs:
                raise TensorError(
                    f"The model '{self.name}' has no output {name[:80]!r:.80}; its outputs are {', '.join(map(repr, model.outputs))}."
                )
        kept = model.states.values() if step is not None else ()
        return list(dict.fromkeys(names)) or [name for name in model.outputs if name not in kept]

    def _read(self, model: ServedModel, payload: InferenceRequest) -> dict[str, Array]:
        found: dict[str, Array] = {}
        for tensor in payload.inputs:
            spec = model.inputs.get(tensor.name)
            if spec is None or tensor.name in found:
                raise TensorError(
                    f"The model '{self.name}' has no {'second ' if spec else ''}input {tensor.name[:80]!r:.80}; its inputs are "
                    f"{', '.join(map(repr, model.inputs))}."
                )
            base64_text = tensor.parameters is not None and tensor.parameters.content_type == "base64"
            found[tensor.name] = read_tensor(
                spec, tensor.datatype, tensor.shape, _data_of(tensor), base64_text, self._options.max_tensor_bytes
            )
        return found

    def _response(self, made: dict[str, Array], wanted: Sequence[str], arrays: bool) -> InferenceResponse:
        outputs = []
        for name in wanted:
            value = made[name]
            datatype = TensorSpec(name, value.dtype, ()).datatype
            data: Any = value
            parameters = None
            if not arrays:
                elements, in_base64 = as_json(value)
                data = TensorData(elements.tolist() if isinstance(elements, np.ndarray) else elements)
                parameters = Parameters(content_type="base64") if in_base64 else None
            outputs.append(
                ResponseOutput.model_construct(
                    name=name, shape=list(value.shape), datatype=datatype, parameters=parameters, data=data
                )
            )
        return InferenceResponse.model_construct(
            model_name=self.name, model_version=self.version, id=None, parameters=None, outputs=outputs
        )


def _data_of(tensor: RequestInput) -> Any:
    return tensor.data.root if isinstance(tensor.data, TensorData) else tensor.data


def _described(specs: Any) -> list[MetadataTensor]:
    return [MetadataTensor.model_construct(name=s.name, datatype=s.datatype, shape=list(s.shape), parameters=None) for s in specs]
