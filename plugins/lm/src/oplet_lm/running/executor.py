"""The executor of a language model: it keeps the caches, and reads tokens with the signatures that the model has."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from oplet import Interpreter
from oplet.errors import LimitError, ModelError
from oplet_lm.bundles.bundle import DECODER, EMBEDDER, PER_LAYER_EMBEDDER
from oplet_lm.running.embedder import Embedder
from oplet_lm.running.step import Embed, Step, shapes_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from oplet_lm.bundles.bundle import Bundle
    from oplet_lm.bundles.metadata import Metadata

    Array = NDArray[Any]

__all__ = ["Executor"]

#: Signatures by name: prefill of any length or a fixed one, for caches of any length or a fixed one.
_PREFILL, _DECODE = re.compile(r"prefill(_\d+)?(_cache_(\d+))?"), re.compile(r"decode(_cache_(\d+))?")
#: The context of models that leave it to callers and do not say how much there may be, and how long their prefills are at most.
_USUAL_CONTEXT, _LONGEST_PREFILL = 2048, 512
#: A prefill of this many times the tokens that are left takes longer than to decode them.
_TOO_LONG = 16
_MOST_CONTEXT = 1 << 20


class Executor:
    """Runs a bundle's decoder model, and keeps its KV caches.

    Args:
        bundle: the bundle.
        metadata: the bundle's metadata.
        num_threads: the number of threads of kernels.

    Attributes:
        context: the number of tokens that the caches have room for.
        tokens: the ids of the tokens that the caches hold.

    Raises:
        ModelError: the bundle has no decoder, or one of an unknown kind.
    """

    def __init__(self, bundle: Bundle, metadata: Metadata, num_threads: int | None = None) -> None:
        model = bundle.model(DECODER)
        if model is None:
            raise ModelError(f"'{bundle.path}' has no model '{DECODER}'; its models are {', '.join(bundle.models) or 'none'}.")
        self._threads, self._cache_value, self.tokens = num_threads, metadata.cache_value, list[int]()
        self.interpreter = Interpreter(model_content=model, num_threads=num_threads)
        executor = bundle.executor_metadata()
        self._recurrent = any(state.is_recurrent for state in executor.states)
        self._window = executor.window
        self._embed: dict[str, Embed] = {}
        for role, name in (("embeddings", EMBEDDER), ("per-layer embeddings", PER_LAYER_EMBEDDER)):
            if (embedder := bundle.model(name)) is not None:
                self._embed[role] = Embedder(embedder, num_threads)
        signatures = self.interpreter.get_signature_list()
        decode, prefills = _chosen(signatures, metadata.most_tokens)
        self._renamed = {s.prefill_input: s.decode_input for s in executor.states if s.prefill_input and s.decode_input}
        self._outputs = {s.decode_input: s.decode_output for s in executor.states} | {
            s.prefill_input: s.prefill_output for s in executor.states
        }
        inputs = self.interpreter.get_signature_runner(decode).get_input_details()
        states = self._states(decode)
        self.context = self._context(inputs, states, metadata.most_tokens, {s.decode_input: s.axis for s in executor.states})
        self._arrays = {name: self._array(inputs[name]) for name in states}
        self._decode = self._step(decode, 1)
        #: Prefills by their lengths, 0 for any length; made when they are first used.
        self._prefills: dict[int, str] = {}
        for key in prefills:
            its = self.interpreter.get_signature_runner(key).get_input_details()
            found = next(
                (shapes_of(its[name])[-1] for name in ("input_pos", "positions") if name in its and len(its[name]["shape"])), None
            )
            if found is not None:
                self._prefills.setdefault(max(found, 0), key)
        self._steps: dict[int, Step] = {}

    @property
    def copied_bytes(self) -> int:
        """The bytes of caches that runs have copied, as the model could not update them in place."""
        return sum(step.copied_bytes for step in (self._decode, *self._steps.values()))

    def read(self, tokens: Sequence[int]) -> Array:
        """Process a whole token sequence, reusing the caches for the longest prefix that they hold; return the logits after it.

        Raises:
            LimitError: the sequence is longer than the context.
        """
        if len(tokens) > self.context:
            raise LimitError(
                f"The prompt has {len(tokens)} tokens, and the model has room for {self.context}; give it a shorter one."
            )
        kept = 0
        while kept < min(len(self.tokens), len(tokens) - 1) and self.tokens[kept] == tokens[kept]:
            kept += 1
        if kept < len(self.tokens) and (self._recurrent or not kept):
            kept = 0
            for array in self._arrays.values():
                array[...] = self._cache_value
        del self.tokens[kept:]
        while (left := len(tokens) - 1 - len(self.tokens)) > 0:
            length = self._length(left)
            if not length:
                self.decode(tokens[len(self.tokens)])
                continue
            if length not in self._steps:
                self._steps[length] = self._step(self._prefills.get(length) or self._prefills[0], length)
            start = len(self.tokens)
            part = tokens[start : start + min(length, left)]
            self._steps[length].run(part, start)
            self.tokens += part
        return self.decode(tokens[-1])

    def decode(self, token: int) -> Array:
        """Process one more token; return the logits after it, a view that the next step overwrites.

        Raises:
            LimitError: the context is full.
        """
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
        whole = [length for length in fitting if left <= length]
        if whole and (min(whole) <= 2 * left or min(whole) == min(fitting)):
            return min(whole) if min(whole) < _TOO_LONG * left else 0
        return max((length for length in fitting if length <= left), default=min(fitting, default=0))

    def _step(self, key: str, length: int) -> Step:
        states = self._states(key)
        try:
            arrays = {name: self._arrays[self._renamed.get(name, name)] for name in states}
        except KeyError as error:
            raise ModelError(f"The signature '{key}' of the model has the state {error}, which decoding has not.") from error
        return Step(self.interpreter, key, states, arrays, length, self.context, self._window, self._embed)

    def _states(self, key: str) -> dict[str, str]:
        """Return the outputs of a signature by the inputs that they are the next values of."""
        names = self.interpreter.get_signature_list()[key]
        outputs = set(names["outputs"])
        found = {name: self._outputs.get(name) or name for name in names["inputs"]}
        return {name: output for name, output in found.items() if output in outputs}

    def _context(self, inputs: dict[str, Any], states: dict[str, str], most: int, axes: dict[str, int]) -> int:
        sizes = [
            shapes_of(inputs[name])[-1]
            for name in ("mask", "attn_mask", "mask_global")
            if name in inputs and len(inputs[name]["shape"])
        ]
        for name in states:
            shape, axis = shapes_of(inputs[name]), axes.get(name, -1)
            if not sizes and len(shape):
                sizes.append(shape[axis] if 0 <= axis < len(shape) else max(shape))
        size = next((size for size in sizes if size > 0), most if most > 0 else _USUAL_CONTEXT)
        return min(size, most, _MOST_CONTEXT) if most > 0 else min(size, _MOST_CONTEXT)

    def _array(self, details: dict[str, Any]) -> Array:
        shape = [self.context if size < 0 else size for size in shapes_of(details)]
        if np.prod(shape, dtype=np.float64) * np.dtype(details["dtype"]).itemsize > 1 << 36:
            raise LimitError(f"The cache '{details['name']}' would have the shape {shape}.")
        return np.full(shape, self._cache_value, details["dtype"])


def _chosen(signatures: dict[str, Any], most: int) -> tuple[str, list[str]]:
    """Return the signature to decode with and those to prefill with: of several lengths of caches, those with the longest wanted.

    Raises:
        ModelError: there is none to decode with.
    """
    decodes = {int(match[2] or 0): key for key in signatures if (match := _DECODE.fullmatch(key))}
    if not decodes:
        raise ModelError(f"The model has no signature 'decode'; it has {', '.join(signatures) or 'none'}.")
    fitting = [length for length in decodes if most <= 0 or length <= most]
    length = max(fitting, default=min(decodes))
    prefills = [key for key in signatures if (match := _PREFILL.fullmatch(key)) and int(match[3] or 0) == length]
    return decodes[length], prefills
