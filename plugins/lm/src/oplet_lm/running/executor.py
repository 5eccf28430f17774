"""The executor of a language model: it keeps the caches, and reads tokens with the signatures that the model has."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from oplet import Interpreter, Limits
from oplet.errors import LimitError, ModelError
from oplet_lm.bundles.bundle import DECODER, EMBEDDER, PER_LAYER_EMBEDDER
from oplet_lm.running.embedder import Embedder
from oplet_lm.running.step import Embed, Step

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from oplet_lm.bundles.bundle import Bundle
    from oplet_lm.bundles.metadata import Metadata

    Array = NDArray[Any]

__all__ = ["Executor"]

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
        roles = {"embeddings": bundle.model(EMBEDDER), "per-layer embeddings": bundle.model(PER_LAYER_EMBEDDER)}
        self._embed: dict[str, Embed] = {role: Embedder(each, num_threads) for role, each in roles.items() if each is not None}
        states, self._window = bundle.executor_metadata()
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

    def read(self, tokens: Sequence[int]) -> Array:
        """Process a whole token sequence, reusing the caches for the longest prefix that they hold; return the logits after it."""
        if len(tokens) > self.context:
            raise LimitError(
                f"The prompt has {len(tokens)} tokens, and the model has room for {self.context}; give it a shorter one."
            )
        alike = [mine == its for mine, its in zip(self.tokens, tokens[:-1])]
        kept = (alike + [False]).index(False)
        if (kept < len(self.tokens) and (self._recurrent or not kept)) or (self._cache_value and not self.tokens):
            kept = 0
            for array in self._arrays.values():
                array[...] = self._cache_value
        del self.tokens[kept:]
        while left := len(tokens) - 1 - len(self.tokens):
            start, length = len(self.tokens), self._length(left)
            if not length:
                self.decode(tokens[start])
                continue
            if length not in self._steps:
                self._steps[length] = self._step(self._prefills.get(length) or self._prefills[0], length)
            part = tokens[start : start + min(length, left)]
            self._steps[length].run(part, start)
            self.tokens += part
        return self.decode(tokens[-1])

    def decode(self, token: int) -> Array:
        """Process one more token; return the logits after it, a view that the next step overwrites."""
        if len(self.tokens) >= self.context:
            raise LimitError(f"The context of {self.context} tokens is full.")
        self._decode.run([token], len(self.tokens))
        self.tokens.append(token)
        return self._decode.logits()

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
