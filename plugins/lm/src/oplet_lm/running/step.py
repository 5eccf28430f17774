"""One signature of a language model, with its inputs, outputs and state in arrays that are bound and not copied."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from oplet.errors import LimitError, ModelError
from oplet.toolkit import SubgraphRunner

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from oplet import Interpreter

    Array = NDArray[Any]

__all__ = ["Embed", "Step", "shapes_of"]

#: What gives the embeddings of token ids, [1, count, ...].
Embed = Callable[[Sequence[int]], "Array"]

#: What inputs are for, by their names. Source: LiteRT-LM's litert_compiled_model_executor_utils.cc.
_ROLES: Final = {
    "tokens": "tokens", "token_ids": "tokens", "input_pos": "positions", "positions": "positions", "mask": "mask", "attn_mask": "mask",
    "mask_global": "mask", "mask_local": "local mask", "embeddings": "embeddings", "per_layer_embeddings": "per-layer embeddings",
    "param_tensor": "parameters",
}  # fmt: skip
#: What is added to the logits of places that are not attended to.
_HIDDEN: Final = {np.dtype(np.float32): np.float32(-0.7) * np.finfo(np.float32).max, np.dtype(np.float16): np.float16(-45824)}
#: The most elements that the inputs of a step may have.
_MOST_ELEMENTS = 1 << 31


def shapes_of(details: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the shape of an input, with -1 for dimensions of any size."""
    return tuple(int(size) for size in details["shape_signature"])


class Step:
    """Runs a signature of a decoder (prefill or decode), which reads tokens and updates the state (KV caches).

    Args:
        interpreter: the model's interpreter.
        key: the key of the signature.
        states: for each state input of the signature, the output that is its next value.
        arrays: the state, by the names of these inputs; other steps share the arrays.
        length: the number of tokens that a run processes.
        context: the number of tokens that the state has room for.
        window: the number of tokens that local attention looks back to; 0 for all.
        embed: functions that compute embeddings of token ids, by the role of the input.
    """

    def __init__(
        self,
        interpreter: Interpreter,
        key: str,
        states: Mapping[str, str],
        arrays: Mapping[str, Array],
        length: int,
        context: int,
        window: int,
        embed: Mapping[str, Embed],
    ) -> None:
        self.length = length
        self._context, self._window, self._embed = context, window, embed
        runner = interpreter.get_signature_runner(key)
        runner.ensure_usable()
        self._inputs, outputs = runner.get_input_details(), runner.get_output_details()
        self._runner = SubgraphRunner(interpreter, runner.subgraph_index)
        self._key = key
        #: The arrays by role, and by the index of their input; state by the indices of input and output.
        self._by_role: dict[str, Array] = {}
        self._bound: dict[int, Array] = {}
        self._state: list[tuple[int, int, Array]] = []
        for name, each in self._inputs.items():
            if name in states:
                self._state.append((each["index"], outputs[states[name]]["index"], arrays[name]))
                continue
            role = _ROLES.get(name)
            if role is None or (role in ("embeddings", "per-layer embeddings") and role not in embed):
                raise ModelError(
                    f"The signature '{key}' of the model takes '{name}', which no part of the bundle gives; run it with LiteRT-LM."
                )
            shape = self._shape(shapes_of(each), role)
            if np.prod(shape, dtype=np.float64) > _MOST_ELEMENTS:
                raise LimitError(f"The input '{name}' of the signature '{key}' would have the shape {list(shape)}.")
            self._by_role[role] = self._bound[each["index"]] = np.zeros(shape, each["dtype"])
        if "positions" not in self._by_role or not self._by_role.keys() & {"tokens", "embeddings"}:
            raise ModelError(f"The signature '{key}' of the model takes no positions, or neither tokens nor embeddings.")
        logits = outputs.get("logits")
        self._logits = None if logits is None else logits["index"]
        self._generation = -1
        self._set: list[tuple[int, Array]] = []
        self._copied: list[tuple[int, Array]] = []
        #: The bytes of state that steps have copied, as they could not be written in place.
        self.copied_bytes = 0

    def _shape(self, shape: tuple[int, ...], role: str) -> tuple[int, ...]:
        """Return an input's shape with sizes for those that callers choose."""
        sizes = list(shape)
        choices = [self.length, self._context] if role.endswith("mask") else [self.length]
        for place in reversed(range(len(sizes))) if role.endswith("mask") else range(len(sizes)):
            if sizes[place] < 0:
                sizes[place] = choices.pop() if choices else 1
        return tuple(sizes)

    def run(self, tokens: Sequence[int], start: int) -> None:
        """Process up to `length` tokens, and update the state.

        Args:
            tokens: the ids of the tokens.
            start: the number of tokens that were processed before.
        """
        if self._generation != self._runner.subgraph.generation or self._generation < 0:
            self._bind()
        self._fill(tokens, start)
        for index, array in self._set:
            self._runner.set(index, array)
        self._runner.invoke()
        for index, array in self._copied:
            array[...] = self._runner.tensor(index).data
            self.copied_bytes += array.nbytes

    def logits(self) -> Array:
        """Return the logits after the last token, a view that the next run overwrites.

        Raises:
            ModelError: the signature has no output "logits".
        """
        if self._logits is None:
            raise ModelError(f"The signature '{self._key}' of the model has no output 'logits'.")
        found: Array = self._runner.tensor(self._logits).data
        last: Array = found.reshape(-1, found.shape[-1])[-1]
        return last

    def _bind(self) -> None:
        """Prepare the signature, and let its inputs and state lie in the arrays."""
        runner = self._runner
        arrays = {**self._bound, **{index: array for index, _, array in self._state}}
        for index, array in arrays.items():
            runner.resize(index, array.shape)
        runner.allocate()
        shared = [(output, array) for index, output, array in self._state if runner.can_overwrite(index, output)]
        placed = set(runner.use_memory({**arrays, **dict(shared)}))
        self._set = [(index, array) for index, array in arrays.items() if index not in placed]
        self._copied = [
            (output, array) for _, output, array in self._state if (output, id(array)) not in {(o, id(a)) for o, a in shared}
        ]
        self._copied += [(output, array) for output, array in shared if output not in placed]
        self._generation = runner.subgraph.generation

    def _fill(self, tokens: Sequence[int], start: int) -> None:
        count = len(tokens)
        for role, array in self._by_role.items():
            if role == "tokens":
                flat = array.reshape(-1)
                flat[:count], flat[count:] = tokens, 0
            elif role == "positions":  # padding goes on counting: what it writes lies behind, where no token attends to it
                array.reshape(-1)[:] = np.arange(start, start + self.length)
            elif role == "parameters":
                flat = array.reshape(-1)
                flat[:3], flat[3:] = (start, start + count, start + count)[: flat.size], 0
            elif role in self._embed:
                array[...] = 0
                array[:, :count] = self._embed[role](tokens)
            else:
                self._mask(array, count, start, self._window if role == "local mask" else 0)

    def _mask(self, mask: Array, count: int, start: int, window: int) -> None:
        """Let each token attend to itself and to those before it, within the window."""
        shown, hidden = (True, False) if mask.dtype == np.bool_ else (0, _HIDDEN[mask.dtype])
        mask[...] = hidden
        for row in range(count):
            end = start + row + 1
            mask[..., row, max(end - window, 0) if window else 0 : end] = shown
