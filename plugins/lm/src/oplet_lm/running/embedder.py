"""Models that give tokens their embeddings, where these are no part of the decoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from oplet import Interpreter
from oplet.errors import ModelError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from oplet import Model

__all__ = ["Embedder"]


class Embedder:
    """Callable that computes embeddings, [1, count, ...], with a model whose signatures map token ids, [1, count] or [count], to them."""

    def __init__(self, model: Model, num_threads: int | None) -> None:
        interpreter = Interpreter(model_content=model, num_threads=num_threads)
        #: By how many tokens they take, 0 for any number: the runner, and its input and output.
        self._signatures: dict[int, tuple[Any, str, str]] = {}
        for key, names in interpreter.get_signature_list().items():
            if len(names["inputs"]) == len(names["outputs"]) == 1:
                runner, name = interpreter.get_signature_runner(key), names["inputs"][0]
                shape = runner.get_input_details()[name]["shape_signature"]
                self._signatures[0 if -1 in shape else int(np.prod(shape))] = runner, name, names["outputs"][0]
        if not self._signatures:
            raise ModelError(f"{model.name} has no signature with one input and one output, as models of embeddings have.")

    def __call__(self, tokens: Sequence[int]) -> NDArray[Any]:
        """Return the embeddings of tokens."""
        pieces = []
        while left := len(tokens):
            length = min((n for n in self._signatures if not n or n >= left), default=max(self._signatures)) or left
            runner, name, output = self._signatures.get(length) or self._signatures[0]
            details = runner.get_input_details()[name]
            ids = np.zeros([1] * (len(details["shape"]) - 1) + [length], details["dtype"])
            part, tokens = tokens[:length], tokens[length:]
            ids[..., : len(part)] = part
            found = runner(**{name: ids})[output]
            pieces.append((found if found.shape[0] == 1 and found.ndim > 2 else found[None])[:, : len(part)])
        return np.concatenate(pieces, axis=1)
