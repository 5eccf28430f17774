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

__all__ = ["Embed", "Step"]

#: What gives the embeddings of token ids, [1, count, ...].
Embed = Callable[[Sequence[int]], "Array"]

#: What inputs are for, by their names. Source: LiteRT-LM's litert_compiled_model_executor_utils.cc.
_ROLES: Final = {
    "tokens": "tokens", "token_ids": "tokens", "input_pos": "positions", "positions": "positions", "mask": "mask", "attn_mask": "mask",
    "mask_global": "mask", "mask_local": "local mask", "embeddings": "embeddings", "per_layer_embeddings": "per-layer embeddings",
    "param_tensor": "parameters",
}  # fmt: skip
#: What is added to the logits of places that are not attended to.
_HIDDEN: Final = {"float32": np.float32(-0.7) * np.finfo(np.float32).max, "float16": np.float16(-45824), "bool": False}
#: The most elements that the inputs of a step may have.
_MOST_ELEMENTS = 1 << 31


class Step:
    """Runs a signature of a decoder (prefill or decode), which reads tokens and updates the state (KV caches).

    Args:
        states: for each state input of the signature, the output that is its next value.
        arrays: the state, by the names of these inputs; other steps share the arrays.
        length: the number of tokens that a run processes; `context` is how many the state has room for.
        window: the number of tokens that local attention looks back to; 0 for all.
        embed: functions that compute embeddings of token ids, by the role of the input.

    Attributes:
        copied_bytes: the bytes of state that runs have copied, as they could not be written in place.
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
        self._key, self._length, self._context, self._window, self._embed = key, length, context, window, embed
        runner = interpreter.get_signature_runner(key)
        runner.ensure_usable()
        outputs = {name: each["index"] for name, each in runner.get_output_details().items()}
        self._logits = outputs.get("logits")
        self._runner = SubgraphRunner(interpreter, runner.subgraph_index)
        #: The arrays by role; by the index of their input, state too; and state by the indices of input and output.
        self._by_role: dict[str, Array] = {}
        self._inputs: dict[int, Array] = {}
        self._state: list[tuple[int, int, Array]] = []
        for name, each in runner.get_input_details().items():
            role, dtype = _ROLES.get(name, ""), np.dtype(each["dtype"])
            if name in states:
                self._state.append((each["index"], outputs[states[name]], arrays[name]))
                self._inputs[each["index"]] = arrays[name]
            elif (
                not role
                or (role.endswith("embeddings") and role not in embed)
                or (role.endswith("mask") and dtype.name not in _HIDDEN)
            ):
                raise ModelError(
                    f"The signature '{key}' of the model takes '{name}', which no part of the bundle gives; run it with LiteRT-LM."
                )
            else:
                shape = self._shape(each["shape_signature"].tolist(), role.endswith("mask"))
                if np.prod(shape, dtype=np.float64) > _MOST_ELEMENTS:
                    raise LimitError(f"The input '{name}' of the signature '{key}' would have the shape {shape}.")
                self._by_role[role] = self._inputs[each["index"]] = np.zeros(shape, dtype)
        if "positions" not in self._by_role or not self._by_role.keys() & {"tokens", "embeddings"}:
            raise ModelError(f"The signature '{key}' of the model takes no positions, or neither tokens nor embeddings.")
        self._generation = -1
        self._set: list[tuple[int, Array]] = []
        self._copied: list[tuple[int, Array]] = []
        self.copied_bytes = 0

    def _shape(self, shape: list[int], is_mask: bool) -> list[int]:
        """Return an input's shape with sizes for those that callers choose; those of a mask are its last."""
        sizes = iter([self._context, self._length] if is_mask else [self._length])
        chosen = [next(sizes, 1) if size < 0 else size for size in (reversed(shape) if is_mask else shape)]
        return chosen[::-1] if is_mask else chosen

    def run(self, tokens: Sequence[int], start: int) -> None:
        """Process tokens, at most as many as a run does, and update the state; `start` tokens were processed before."""
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
        """Return the logits after the last token, a view that the next run overwrites."""
        if self._logits is None:
            raise ModelError(f"The signature '{self._key}' of the model has no output 'logits'.")
        found: Array = self._runner.tensor(self._logits).data
        last: Array = found.reshape(-1, found.shape[-1])[-1]
        return last

    def _bind(self) -> None:
        """Prepare the signature, and let its inputs and state lie in the arrays."""
        for index, array in self._inputs.items():
            self._runner.resize(index, array.shape)
        self._runner.allocate()
        shared = {output: array for index, output, array in self._state if self._runner.can_overwrite(index, output)}
        placed = set(self._runner.use_memory(self._inputs | shared))
        self._set = [(index, array) for index, array in self._inputs.items() if index not in placed]
        self._copied = [(output, array) for _, output, array in self._state if output not in placed or output not in shared]
        self._generation = self._runner.subgraph.generation

    def _fill(self, tokens: Sequence[int], start: int) -> None:
        count = len(tokens)
        for role, array in self._by_role.items():
            flat = array.reshape(-1)
            if role == "tokens":
                flat[:count], flat[count:] = tokens, 0
            elif role == "positions":  # padding goes on counting: what it writes lies behind, where no token attends to it
                flat[:] = np.arange(start, start + self._length)
            elif role == "parameters":
                flat[:3], flat[3:] = (start, start + count, start + count)[: flat.size], 0
            elif role in self._embed:
                array[...] = 0
                array[:, :count] = self._embed[role](tokens)
            else:
                self._mask(array, count, start, self._window if role == "local mask" else 0)

    def _mask(self, mask: Array, count: int, start: int, window: int) -> None:
        """Let each token attend to itself and to those before it, within the window."""
        mask[...] = _HIDDEN[mask.dtype.name]
        for row in range(count):
            end = start + row + 1
            mask[..., row, max(end - window, 0) if window else 0 : end] = mask.dtype == np.bool_
