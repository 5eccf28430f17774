"""A model as the server runs it: tensor specs of the protocol, and requests run in bounded batches of rows."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet import Interpreter
from oplet.errors import DeadlineError, LimitError, ModelError, TensorError
from oplet_predictor import Predictor
from oplet_predictor.arguments import Arguments, delegate_arguments
from oplet_serve.options import Options
from oplet_serve.values.tensors import TensorSpec

__all__ = ["ServedModel"]

Array = NDArray[Any]
#: Bytes of a request beside its elements, and of an element in JSON, however it is nested and indented: ten times what most take.
_REQUEST, _ELEMENT = 1 << 16, 256
_UNBOUNDED = (1 << 63) - 1


class ServedModel:
    """An open model, run by a Predictor.

    If every input and output has a leading batch dimension, a request may have any number of rows; else one value per tensor.

    Args:
        path: the .tflite file.
        options: the options of serving it.
        max_batch_size: the most rows that run at once where the model takes batches, even if floats then differ in their last
            bits; 1 to batch only where the Predictor finds that results keep the same bits.

    Attributes:
        path: the file's absolute path.
        inputs, outputs: the tensors by name, with the shapes that requests and responses have.
        batch_size: rows that run at once, 1 for row by row.
        takes_rows: whether a request may have several rows.
        most_bytes: the bytes of the largest request that the inputs' shapes and the rows of one leave possible; very many if a size is
            free, or an input is text.
        states: for stateful sequences, by input name the output that is the input's next value.
        input_index, output_index: the indices of the tensors by name.

    Raises:
        OpletError: the model cannot be opened, or has a tensor for which the protocol has no datatype.
    """

    def __init__(self, path: str, options: Options, max_batch_size: int = 1) -> None:
        self.path, self._options = os.path.abspath(path), options
        self._predict = Predictor(
            self.path,
            delegates=options.delegates,
            num_threads=options.num_threads,
            signature=options.signature,
            limits=options.limits,
            batch=max_batch_size if max_batch_size > 1 else None,
        )
        inputs, outputs = self._predict.inputs, self._predict.outputs
        columns = [*inputs.values(), *outputs.values()]
        self.takes_rows = bool(inputs) and all(column.fills_batch for column in columns)
        self._fills = {column.name: column.fills_batch for column in columns}
        lead = (-1,) if self.takes_rows else (1,)
        made = [TensorSpec(c.name, c.dtype, (*(lead if c.fills_batch else ()), *c.shape)) for c in columns]
        for spec in made:
            spec.datatype  # noqa: B018 - refuses what the protocol has no datatype for
        self.inputs = {spec.name: spec for spec in made[: len(inputs)]}
        self.outputs = {spec.name: spec for spec in made[len(inputs) :]}
        self.batch_size = self._predict.batch_size if self.takes_rows else 1
        self.input_index = {name: column.index for name, column in inputs.items()}
        self.output_index = {name: column.index for name, column in outputs.items()}
        self.states = self._states()
        self.most_bytes = self._most_bytes()

    def _most_bytes(self) -> int:
        rows = self._options.max_rows if self.takes_rows else 1
        shapes = [spec.shape[self.takes_rows :] for spec in self.inputs.values()]
        if any(-1 in shape for shape in shapes) or any(spec.dtype == object for spec in self.inputs.values()):
            return _UNBOUNDED
        return _REQUEST + _ELEMENT * rows * sum(map(math.prod, shapes))

    def _states(self) -> dict[str, str]:
        """Return the outputs by the inputs that they are the next values of: those of the options that the model has, or of one name.

        Raises:
            ModelError: of those of the options, one has another type or shape, or is the next value of two.
        """
        pairs = [
            (a, b) for a, b in self._options.state or zip(self.inputs, self.inputs) if a in self.inputs and b in self.outputs
        ]
        found: dict[str, str] = {}
        for name, output in pairs:
            mine, its = self.inputs[name], self.outputs[output]
            alike = (mine.dtype, mine.shape) == (its.dtype, its.shape) and mine.dtype != object
            if alike and output not in found.values() and self.input_index[name] != self.output_index[output]:
                found[name] = output
            elif self._options.state:
                raise ModelError(
                    f"The output '{output}' is no next value of the input '{name}': it is another's, or {its.datatype} {list(its.shape)} and no "
                    f"{mine.datatype} {list(mine.shape)}."
                )
        return found

    def open(self) -> tuple[Interpreter, int]:
        """Open a further interpreter, which the caller must close; return it with the index of the served subgraph."""
        options = self._options
        delegates = delegate_arguments(options.delegates)
        interpreter = Arguments(self.path, delegates, options.num_threads, None, options.limits, None, None, None).open()
        keys = list(interpreter.get_signature_list())
        key = options.signature if options.signature or len(keys) != 1 else keys[0]
        return interpreter, interpreter.get_signature_runner(key).subgraph_index if key else 0

    def rows_of(self, values: Mapping[str, Array]) -> int:
        """Check a request's inputs, and return their number of rows.

        Raises:
            TensorError: an input is missing, or inputs have different numbers of rows.
            LimitError: there are too many rows, or their outputs would be too large.
        """
        missing = [name for name in self.inputs if name not in values]
        if missing:
            raise TensorError(f"The input '{missing[0]}' is missing; the inputs are {', '.join(map(repr, self.inputs))}.")
        if not self.takes_rows:
            return 1
        counts = {name: len(value) for name, value in values.items()}
        if len(set(counts.values())) > 1:
            told = ", ".join(f"'{name}' {count}" for name, count in counts.items())
            raise TensorError(f"The inputs have different numbers of rows: {told}.")
        count = next(iter(counts.values()))
        if count > self._options.max_rows:
            raise LimitError(f"The request has {count} rows, and one may have {self._options.max_rows}; send it in parts.")
        for spec in self.outputs.values():
            nbytes = count * math.prod(max(size, 1) for size in spec.shape[1:]) * spec.dtype.itemsize
            if nbytes > self._options.max_tensor_bytes:
                raise LimitError(
                    f"The output '{spec.name}' of {count} rows would have {nbytes} bytes, and one may have "
                    f"{self._options.max_tensor_bytes}; send the rows in parts."
                )
        return count

    def run(self, values: Mapping[str, Array]) -> dict[str, Array]:
        """Run the model on a request's values; return the outputs by name.

        Raises:
            OpletError: the outputs cannot be computed.
        """
        if not self.takes_rows:
            rows = {name: value if self._fills[name] else value[np.newaxis] for name, value in values.items()}
            made = self._predict(rows)
            return {name: value if self._fills[name] else value[0] for name, value in made.items()}
        count, step = len(next(iter(values.values()))), self.batch_size
        if count <= step:
            return self._checked(self._predict(values))
        ends = time.monotonic() + self._options.max_seconds
        parts, size = [], 0
        for start in range(0, count, step):
            if time.monotonic() > ends:
                raise DeadlineError(
                    f"The request was stopped after {start} of {count} rows and {self._options.max_seconds} s; send it in parts."
                )
            part = self._checked(self._predict({name: value[start : start + step] for name, value in values.items()}))
            size += sum(value.nbytes for value in part.values())
            if size > self._options.max_arena_bytes:
                raise LimitError(f"The outputs of {start + step} rows have {size} bytes; send the request in parts.")
            parts.append(part)
        return {name: self._joined(name, [part[name] for part in parts]) for name in self.outputs}

    def _checked(self, made: dict[str, Array]) -> dict[str, Array]:
        for name, value in made.items():
            if value.dtype == object and value.size and isinstance(value.flat[0], np.ndarray):
                raise self._ragged(name)
        return made

    def _joined(self, name: str, parts: list[Array]) -> Array:
        if len({part.shape[1:] for part in parts}) > 1:
            raise self._ragged(name)
        return np.concatenate(parts)

    def _ragged(self, name: str) -> TensorError:
        return TensorError(
            f"The output '{name}' has another shape for some rows than for others; send each row in a request of its own."
        )

    def close(self) -> None:
        """Close the model's interpreters."""
        self._predict.close()
