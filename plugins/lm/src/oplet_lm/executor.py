"""The executor of a language model keeps the caches, and reads tokens with the model's signatures. A step is one of them; its inputs and state
lie in arrays that are bound and not copied.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from oplet import Interpreter, Limits
from oplet.errors import LimitError, ModelError
from oplet.toolkit import SubgraphRunner, inline_composites
from oplet_lm.bundle import DECODER, EMBEDDER, PER_LAYER_EMBEDDER

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from oplet import Model
    from oplet_lm.bundle import Bundle
    from oplet_lm.metadata import Metadata

    Array = NDArray[Any]

__all__ = ["Executor", "Step"]

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
#: Signatures by name: prefill of any length or a fixed one, for caches of any length or a fixed one.
_PREFILL, _DECODE = re.compile(r"prefill(_\d+)?(_cache_(\d+))?"), re.compile(r"decode(_cache_(\d+))?")
#: The context of models that leave it to callers and do not say how much there may be, the longest one, and the longest prefill of any length.
_USUAL_CONTEXT, _MOST_CONTEXT, _LONGEST_PREFILL = 2048, 1 << 20, 512
#: A prefill of this many times the tokens that are left takes longer than to decode them.
_TOO_LONG = 16
#: The most bytes of all caches, which are tensors of the model, and the kind of states in executor_metadata.proto that linear attention has.
_MOST_BYTES, _LINEAR_ATTENTION = Limits().max_arena_bytes or 0, 5


class Executor:
    """Runs a bundle's decoder model, and keeps its KV caches.

    Attributes:
        context: the number of tokens that the caches have room for.
        tokens: the ids of the tokens that the caches hold.
    """

    def __init__(self, bundle: Bundle, metadata: Metadata, num_threads: int | None = None) -> None:
        model = bundle.model(DECODER)
        if model is None:
            raise ModelError(f"'{bundle.path}' has no model '{DECODER}'; its models are {', '.join(bundle.models) or 'none'}.")
        self.tokens: list[int] = []
        self.interpreter = Interpreter(model_content=model, num_threads=num_threads)
        inline_composites(self.interpreter)  # some update the caches
        roles = {"embeddings": bundle.model(EMBEDDER), "per-layer embeddings": bundle.model(PER_LAYER_EMBEDDER)}
        self._embed: dict[str, Embed] = {role: _Embedder(each, num_threads) for role, each in roles.items() if each is not None}
        states, self._window = metadata.states, metadata.window
        #: Whether a state has no entry for each token, so that tokens cannot be removed from it.
        self._recurrent = any(state.kind == _LINEAR_ATTENTION for state in states)
        #: The names of states in decoding by those in prefills, and outputs by their inputs.
        self._renamed = {s.prefill_input: s.decode_input for s in states if s.prefill_input and s.decode_input}
        self._outputs = {s.decode_input: s.decode_output for s in states} | {s.prefill_input: s.prefill_output for s in states}
        self._signatures = self.interpreter.get_signature_list()
        decode, prefills = _chosen(self._signatures, metadata.most_tokens)
        inputs = self.interpreter.get_signature_runner(decode).get_input_details()
        shapes = {name: each["shape_signature"].tolist() for name, each in inputs.items()}
        held = {name: shapes[name] for name in self._states(decode)}
        self.context = _context(shapes, held, metadata.most_tokens, {s.decode_input: s.axis for s in states})
        self._cache_value = metadata.cache_value
        sizes = {name: [self.context if size < 0 else size for size in shape] for name, shape in held.items()}
        taken = [np.prod(each, dtype=np.float64) * np.dtype(inputs[name]["dtype"]).itemsize for name, each in sizes.items()]
        if sum(taken) > _MOST_BYTES:
            raise LimitError(
                f"The caches '{', '.join(held)}' would take {sum(taken):.0f} bytes; a model's tensors may take {_MOST_BYTES}."
            )
        # Zeros take no memory before a step writes something else there.
        self._arrays = {name: np.zeros(each, inputs[name]["dtype"]) for name, each in sizes.items()}
        #: Whether the caches have their first value, and nothing else was written there.
        self._are_new = not self._cache_value
        self._decode = self._step(decode, 1)
        #: Prefills by their lengths, 0 for any length, and what runs them, made when they are first used.
        self._prefills: dict[int, str] = {}
        self._steps: dict[int, Step] = {}
        for key in prefills:
            its = self.interpreter.get_signature_runner(key).get_input_details()
            positions = its.get("input_pos", its.get("positions"))
            if positions is not None and len(positions["shape"]):
                self._prefills.setdefault(max(int(positions["shape_signature"][-1]), 0), key)

    @property
    def copied_bytes(self) -> int:
        """The bytes of caches that runs have copied, as the model could not update them in place."""
        return sum(step.copied_bytes for step in (self._decode, *self._steps.values()))

    def read(self, tokens: Sequence[int], anew: bool = False) -> Array:
        """Process a whole token sequence, reusing the caches for the longest prefix that they hold, unless it is read `anew`, so that the
        answer is the same whatever was read before; return the logits after it.
        """
        kept = 0 if anew else [*(mine == its for mine, its in zip(self.tokens, tokens[:-1])), False].index(False)
        if not kept or (self._recurrent and kept < len(self.tokens)):
            kept = 0
            for array in () if self._are_new else self._arrays.values():
                array[...] = self._cache_value
        del self.tokens[kept:]
        while left := len(tokens) - 1 - len(self.tokens):
            start, length = len(self.tokens), self._length(left)
            if not length:
                self.decode(tokens[start])
                continue
            if length not in self._steps:
                self._steps[length] = self._step(self._prefills.get(length) or self._prefills[0], length)
            self._run(self._steps[length], tokens[start : start + min(length, left)])
        return self.decode(tokens[-1])

    def decode(self, token: int) -> Array:
        """Process one more token; return the logits after it, a view that the next step overwrites."""
        self._run(self._decode, [token])
        return self._decode.logits()

    def _run(self, step: Step, tokens: Sequence[int]) -> None:
        """Process tokens; where the run is interrupted, the caches hold nothing that may be used."""
        held, self.tokens, self._are_new = self.tokens, [], False
        step.run(tokens, len(held))
        held += tokens
        self.tokens = held

    def _length(self, left: int) -> int:
        """Return the length of the prefill to read some of the tokens that are left; 0 to decode one."""
        room = self.context - len(self.tokens)
        if 0 in self._prefills:
            length = min(1 << (left - 1).bit_length(), _LONGEST_PREFILL)
            return length if length <= room and not self._recurrent else min(left, _LONGEST_PREFILL)
        fitting = [length for length in self._prefills if length <= (left if self._recurrent else room)]
        whole, part = min((n for n in fitting if n >= left), default=0), max((n for n in fitting if n <= left), default=0)
        if whole and (whole <= 2 * left or not part):
            return whole if whole < _TOO_LONG * left else 0
        return part

    def _step(self, key: str, length: int) -> Step:
        states = self._states(key)
        try:
            arrays = {name: self._arrays[self._renamed.get(name, name)] for name in states}
        except KeyError as error:
            raise ModelError(f"The signature '{key}' of the model has the state {error}, which decoding has not.") from error
        return Step(self.interpreter, key, states, arrays, length, self.context, self._window, self._embed)

    def _states(self, key: str) -> dict[str, str]:
        """Return the outputs of a signature by the inputs that they are the next values of."""
        names = self._signatures[key]
        found = {name: self._outputs.get(name) or name for name in names["inputs"]}
        return {name: output for name, output in found.items() if output in names["outputs"]}


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
                continue
            of_mask, of_embeddings = role.endswith("mask"), role.endswith("embeddings")
            if not role or (of_embeddings and role not in embed) or (of_mask and dtype.name not in _HIDDEN):
                raise ModelError(
                    f"The signature '{key}' takes '{name}', which no part of the bundle gives; run it with LiteRT-LM."
                )
            shape = self._shape(each["shape_signature"].tolist(), of_mask)
            if np.prod(shape, dtype=np.float64) > _MOST_ELEMENTS:
                raise LimitError(f"The input '{name}' of the signature '{key}' would have the shape {shape}.")
            self._by_role[role] = self._inputs[each["index"]] = np.zeros(shape, dtype)
        if "positions" not in self._by_role or not self._by_role.keys() & {"tokens", "embeddings"}:
            raise ModelError(f"The signature '{key}' of the model takes no positions, or neither tokens nor embeddings.")
        self._generation, self.copied_bytes = -1, 0

    def _shape(self, shape: list[int], is_mask: bool) -> list[int]:
        """Return an input's shape with sizes for those that callers choose; those of a mask are its last."""
        sizes = iter([self._context, self._length] if is_mask else [self._length])
        chosen = [next(sizes, 1) if size < 0 else size for size in (reversed(shape) if is_mask else shape)]
        return chosen[::-1] if is_mask else chosen

    def run(self, tokens: Sequence[int], start: int) -> None:
        """Process tokens, at most as many as a run does, and update the state; `start` tokens were processed before."""
        if self._generation < 0 or self._generation != self._runner.subgraph.generation:
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
        found: Any = self._runner.tensor(self._logits).data
        return found.reshape(-1, found.shape[-1])[-1]  # type: ignore[no-any-return]

    def _bind(self) -> None:
        """Prepare the signature, and let its inputs and state lie in the arrays."""
        for index, array in self._inputs.items():
            self._runner.resize(index, array.shape)
        self._runner.allocate()
        shared = {output: array for index, output, array in self._state if self._runner.can_overwrite(index, output)}
        placed = set(self._runner.use_memory(self._inputs | shared))
        #: Inputs that are copied before a run, and state after it, as they could not be placed.
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


class _Embedder:
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

    def __call__(self, tokens: Sequence[int]) -> Array:
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


def _context(shapes: dict[str, list[int]], states: dict[str, list[int]], most: int, axes: dict[str, int]) -> int:
    """Return how many tokens the caches are to have room for: what masks or else caches have, `most` at most if that is not 0."""
    sizes = [shapes[name][-1] for name in ("mask", "attn_mask", "mask_global") if shapes.get(name)]
    for name, shape in states.items() if not sizes else ():
        if shape:
            axis = axes.get(name, -1)
            sizes.append(shape[axis] if 0 <= axis < len(shape) else max(shape))
    size = next((size for size in sizes if size > 0), most if most > 0 else _USUAL_CONTEXT)
    return min(size, _MOST_CONTEXT, most if most > 0 else size)


def _chosen(signatures: dict[str, Any], most: int) -> tuple[str, list[str]]:
    """Return the signature to decode with and those to prefill with: of several lengths of caches, those with the longest wanted."""
    decodes = {int(match[2] or 0): key for key in signatures if (match := _DECODE.fullmatch(key))}
    if not decodes:
        raise ModelError(f"The model has no signature 'decode'; it has {', '.join(signatures) or 'none'}.")
    fitting = [length for length in decodes if most <= 0 or length <= most]
    length = max(fitting, default=min(decodes))
    prefills = [key for key in signatures if (match := _PREFILL.fullmatch(key)) and int(match[3] or 0) == length]
    return decodes[length], prefills
