"""Models that give tokens their embeddings, where these are no part of the decoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from oplet import Interpreter
from oplet.errors import ModelError
from oplet_lm.running.step import shapes_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from oplet import Model

__all__ = ["Embedder"]


class Embedder:
    """Callable that computes the embeddings of token ids with a model.

    Args:
        model: a model whose signatures map token ids, [1, count], to embeddings, [1, count, ...].
        num_threads: the number of threads of kernels.

    Raises:
        ModelError: the model has no such signature.
    """

    def __init__(self, model: Model, num_threads: int | None) -> None:
        self._interpreter = Interpreter(model_content=model, num_threads=num_threads)
        self._signatures: dict[int, tuple[Any, str, str]] = {}
        for key, names in self._interpreter.get_signature_list().items():
            if len(names["inputs"]) != 1 or len(names["outputs"]) != 1:
                continue
            runner, name = self._interpreter.get_signature_runner(key), names["inputs"][0]
            shape = shapes_of(runner.get_input_details()[name])
            length = 0 if any(size < 0 for size in shape) else int(np.prod(shape))
            self._signatures[length] = runner, name, names["outputs"][0]
        if not self._signatures:
            raise ModelError(f"{model.name} has no signature with one input and one output, as models of embeddings have.")

    def __call__(self, tokens: Sequence[int]) -> NDArray[Any]:
        """Return the embeddings of tokens."""
        pieces = []
        at = 0
        while at < len(tokens):
            left = len(tokens) - at
            length = (
                0 if 0 in self._signatures else min((n for n in self._signatures if n >= left), default=max(self._signatures))
            )
            runner, name, output = self._signatures[length]
            taken = list(tokens[at : at + (length or left)])
            details = runner.get_input_details()[name]
            ids = np.zeros([1, length or left] if len(details["shape"]) == 2 else [length or left], details["dtype"])
            ids.reshape(-1)[: len(taken)] = taken
            found = runner(**{name: ids})[output]
            pieces.append((found if found.shape[0] == 1 and found.ndim > 2 else found[None])[:, : len(taken)])
            at += len(taken)
        return np.concatenate(pieces, axis=1)
