"""An interpreter's methods, as the grader of recorded cases calls them, on a CompiledModel: every value goes through buffers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from oplet_compiled_model import CompiledModel, TensorBuffer

__all__ = ["ThroughBuffers"]

_PACKED = ("int4", "uint4", "int2")


class ThroughBuffers:
    """Answers the grader; buffers stay the same from step to step as long as shapes do.

    Args:
        model_content: the model's bytes.
    """

    def __init__(self, model_content: bytes) -> None:
        self.model = CompiledModel.from_buffer(model_content)
        self._inputs: dict[tuple[int, int], TensorBuffer] = {}
        self._outputs: dict[int, tuple[list[list[int]], list[TensorBuffer]]] = {}
        self._answers: list[NDArray[Any]] = []
        self._first = self._for_subgraph()

    def _for_subgraph(self) -> int:
        """The signature that runs the whole main graph; the first one if none does."""
        main = self.model.interpreter.subgraphs[0]
        keys = list(self.model.get_signature_list())
        for number, key in enumerate(keys):
            details = self.model.get_input_tensor_details(key).values()
            if sorted(each["index"] for each in details) == sorted(main.inputs):
                return number
        return 0

    # As an interpreter ---------------------------------------------------------------------------------------

    def allocate_tensors(self) -> None:
        """Nothing: a CompiledModel prepares itself."""

    def get_input_details(self) -> list[dict[str, Any]]:
        """The places of the inputs."""
        return [{"index": place} for place in range(len(self._names("inputs", self._first)))]

    def get_output_details(self) -> list[dict[str, Any]]:
        """The places of the outputs."""
        return [{"index": place} for place in range(len(self._names("outputs", self._first)))]

    def resize_tensor_input(self, place: int, shape: Sequence[int]) -> None:
        """Resize an input; to no elements by the run that takes them, as LiteRT refuses to do it here."""
        if 0 in shape:
            return
        self.model.resize_input_tensor(place, shape, self._first, strict=False)

    def set_tensor(self, place: int, value: NDArray[Any]) -> None:
        """Write an input's buffer."""
        self._write(self._first, place, value)

    def invoke(self) -> None:
        """Run the first signature."""
        self._answers = self._run(self._first)

    def get_tensor(self, place: int) -> NDArray[Any]:
        """The answer at a place."""
        return self._answers[place]

    def get_signature_runner(self, key: str) -> Callable[..., dict[str, NDArray[Any]]]:
        """What runs a signature on values by name."""
        number = self.model.get_signature_index(key)

        def run(**values: NDArray[Any]) -> dict[str, NDArray[Any]]:
            names = self._names("inputs", number)
            for name, value in values.items():
                self._write(number, names.index(name), value)
            return dict(zip(self._names("outputs", number), self._run(number)))

        return run

    # Through buffers -----------------------------------------------------------------------------------------

    def _names(self, role: str, number: int) -> list[str]:
        names: list[str] = self.model.get_signature_by_index(number)[role]
        return names

    def _write(self, number: int, place: int, value: NDArray[Any]) -> None:
        value = np.asarray(value)
        key = list(self.model.get_signature_list())[number]
        name = self._names("inputs", number)[place]
        details = self.model.get_input_tensor_details(key)[name]
        buffer = self._inputs.get((number, place))
        if not value.size and details["shape"] != list(
            value.shape
        ):  # which resizing refuses, as in LiteRT; a run resizes by itself
            self._inputs[number, place] = TensorBuffer.create_from_host_memory(np.ascontiguousarray(value))
            return
        if details["shape"] != list(value.shape):
            self.model.resize_input_tensor(place, value.shape, number, strict=False)
            buffer = None
        if buffer is None or buffer.get_tensor_details()["shape"] != list(value.shape):
            buffer = self._inputs[number, place] = self.model.create_input_buffers(number)[place]
        if details["dtype"] in _PACKED:
            value = value.astype(getattr(ml_dtypes, details["dtype"]))
        buffer.write(value)

    def _run(self, number: int) -> list[NDArray[Any]]:
        key = list(self.model.get_signature_list())[number]
        count = len(self._names("inputs", number))
        made = self.model.create_input_buffers(number) if len(self._inputs) < count else []
        inputs = [self._inputs.get((number, place)) or made[place] for place in range(count)]
        details = self.model.get_output_tensor_details(key)
        shapes = [details[name]["shape"] for name in self._names("outputs", number)]
        known, outputs = self._outputs.get(number, ([], []))
        if known != shapes:
            outputs = self.model.create_output_buffers(number)
            self._outputs[number] = shapes, outputs
        self.model.run_by_index(number, inputs, outputs)
        after = self.model.get_output_tensor_details(key)
        names = self._names("outputs", number)
        return [_read(buffer, after[name]["shape"]) for name, buffer in zip(names, outputs)]


def _read(buffer: TensorBuffer, now: list[int]) -> NDArray[Any]:
    """All values of a buffer; none where the run has resized its output to no elements, for which any buffer is large enough."""
    details = buffer.get_tensor_details()
    if 0 in now:
        details["shape"] = now
    name = details["dtype"]
    if name in _PACKED:
        return buffer.read(details["shape"], getattr(ml_dtypes, name)).astype(np.uint8 if name == "uint4" else np.int8)
    dtype: Any = object if name == "string" else getattr(ml_dtypes, name, None) or np.dtype(name)
    return buffer.read(details["shape"], dtype)
