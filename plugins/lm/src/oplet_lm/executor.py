"""The executor of a language model keeps the caches, and reads tokens with the model's signatures. A step is one of them, with those of an
auxiliary model around it if there is one; their inputs and state lie in arrays that are bound and not copied.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from oplet import Interpreter, Limits
from oplet.errors import LimitError, ModelError
from oplet.kernels.arrays import Array
from oplet.toolkit import SubgraphRunner, inline_composites
from oplet_lm.bundle import AUXILIARY, DECODER, EMBEDDER, PER_LAYER_EMBEDDER, Bundle
from oplet_lm.metadata import Metadata

__all__ = ["Executor", "Part", "Step"]

#: What gives the embeddings of token ids, [1, count, ...].
Embed = Callable[[Sequence[int]], Array]
#: What inputs are for, by their names. Source: LiteRT-LM's litert_compiled_model_executor_utils.cc, and litert-torch's split_cache.
_ROLES: Final = {
    "tokens": "tokens", "token_ids": "tokens", "input_pos": "positions", "positions": "positions", "mask": "mask", "attn_mask": "mask",
    "mask_global": "mask", "mask_local": "local mask", "embeddings": "embeddings", "per_layer_embeddings": "per-layer embeddings",
    "param_tensor": "parameters", "input_tokens": "tokens", "time_step": "start", "valid_mask": "valid",
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
    """Runs a bundle's decoder model, and keeps its KV caches, which have room for `context` tokens and hold `tokens`, a list of ids."""

    def __init__(self, bundle: Bundle, metadata: Metadata, num_threads: int | None = None) -> None:
        roles = {None: DECODER, "auxiliary": AUXILIARY, "embeddings": EMBEDDER, "per-layer embeddings": PER_LAYER_EMBEDDER}
        models = {role: bundle.model(each) for role, each in roles.items() if each in bundle.models}
        opened = {role: Interpreter(model_content=model, num_threads=num_threads) for role, model in models.items()}
        if None not in opened:
            raise ModelError(f"'{bundle.path}' has no model '{DECODER}'; its models are {', '.join(bundle.models) or 'none'}.")
        self.tokens: list[int] = []
        for interpreter in opened.values():
            inline_composites(interpreter)  # some update caches
        self.interpreter, self._auxiliary = opened.pop(None), opened.pop("auxiliary", None)
        self._embed: dict[str, Embed] = {str(role): _Embedder(each, str(role)) for role, each in opened.items()}
        states, self._window = metadata.states, metadata.window
        #: Whether a state has no entry for each token, so that tokens cannot be removed from it.
        self._recurrent = any(state.kind == _LINEAR_ATTENTION for state in states)
        #: The names of states in decoding by those in prefills, and outputs by their inputs.
        self._renamed = {s.prefill_input: s.decode_input for s in states if s.prefill_input and s.decode_input}
        self._outputs = {s.decode_input: s.decode_output for s in states} | {s.prefill_input: s.prefill_output for s in states}
        decode, prefills = _chosen(self.interpreter.get_signature_list(), metadata.most_tokens)
        parts = self._parts(decode)
        inputs = _read(parts)
        shapes = {name: each["shape_signature"] for name, each in inputs.items()}
        types = {name: np.dtype(inputs[name]["dtype"]) for name in self._states(parts)}
        self.context, self._cache_value = _context(shapes, types, metadata), metadata.cache_value
        sizes = {name: np.where(shapes[name] < 0, self.context, shapes[name]) for name in types}
        if (taken := sum(np.prod(sizes[name], dtype=np.float64) * types[name].itemsize for name in types)) > _MOST_BYTES:
            raise LimitError(f"The caches '{', '.join(types)}' would take {taken:.0f} bytes; tensors may take {_MOST_BYTES}.")
        # Zeros take no memory before a step writes something else there.
        self._arrays = {name: np.zeros(size, types[name]) for name, size in sizes.items()}
        #: Whether the caches have their first value, and nothing else was written there.
        self._are_new = not self._cache_value
        self._decode = self._step(parts, 1)
        #: Prefills by their lengths, 0 for any length; and what runs them, made when they are first used, and at 0 decoding.
        self._prefills: dict[int, list[Part]] = {}
        self._steps = {0: self._decode}
        for parts in map(self._parts, prefills):
            for name, each in _read(parts).items():
                if _ROLES.get(name) == "positions" and each["shape"].size:
                    self._prefills.setdefault(max(int(each["shape_signature"][-1]), 0), parts)

    @property
    def copied_bytes(self) -> int:
        """The bytes of caches that runs have copied, as the model could not update them in place."""
        return sum(part.copied_bytes for step in self._steps.values() for part in step.parts)

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
            if length not in self._steps:
                self._steps[length] = self._step(self._prefills.get(length) or self._prefills[0], length)
            self._run(self._steps[length], tokens[start : start + min(max(length, 1), left)])
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

    def _parts(self, key: str) -> list[Part]:
        """Return what a step runs: a signature of the decoder, between those of the auxiliary model that make inputs and update caches."""
        own = Part(self.interpreter, key)
        if self._auxiliary is None or self._states([own]):
            return [own]
        kind, _, length = key.partition("_")
        names = re.compile(rf"{kind}_[a-z_]+{length and '_'}{length}")
        beside = [Part(self._auxiliary, each) for each in self._auxiliary.get_signature_list() if names.fullmatch(each)]
        return sorted([own, *beside], key=lambda part: 1 if part is own else 2 * bool(part.inputs.keys() & own.outputs.keys()))

    def _step(self, parts: list[Part], length: int) -> Step:
        try:
            states = {name: (its, self._arrays[self._renamed.get(name, name)]) for name, its in self._states(parts).items()}
        except KeyError as error:
            raise ModelError(f"The step '{parts[0].key}' of the model has the state {error}, which decoding has not.") from error
        return Step(parts, states, length, self.context, self._window, self._embed)

    def _states(self, parts: list[Part]) -> dict[str, str]:
        """Return the outputs of a step by the inputs that they are the next values of."""
        made = {name for part in parts for name in part.outputs}
        found = {name: self._outputs.get(name) or name for name in _read(parts)}
        return {name: output for name, output in found.items() if output in made}


class Part:
    """A signature that runs in a step: its `inputs` (details by name), and `outputs` (indices by name) where that can be, lie in arrays of the
    step; others are copied, of state `copied_bytes` so far.
    """

    def __init__(self, interpreter: Interpreter, key: str) -> None:
        runner = interpreter.get_signature_runner(key)
        runner.ensure_usable()
        self.key, self.inputs = key, runner.get_input_details()
        self.outputs = {name: each["index"] for name, each in runner.get_output_details().items()}
        self.runner = SubgraphRunner(interpreter, runner.subgraph_index)
        self._generation, self.copied_bytes = -1, 0

    def place(self, given: Mapping[str, Array], made: Mapping[str, Array], state: Collection[Array]) -> None:
        """Let inputs (`given`) and outputs (`made`) lie in these arrays, by name; copies of those of the `state` are counted."""
        self._given = {each["index"]: given[name] for name, each in self.inputs.items()}
        self._made = {index: made[name] for name, index in self.outputs.items() if name in made}
        self._counted = {id(array) for array in state}

    def run(self) -> None:
        """Run the signature on its arrays."""
        if self._generation < 0 or self._generation != self.runner.subgraph.generation:
            self._bind()
        for index, array in self._before:
            self.runner.set(index, array)
        self.runner.invoke()
        for index, array in self._after:
            found = self.runner.tensor(index)
            if found.shape != array.shape:
                raise ModelError(f"The signature '{self.key}' makes {found}, which is taken with the shape {list(array.shape)}.")
            array[...] = found.data
        self.copied_bytes += self._copied

    def _bind(self) -> None:
        for index, array in self._given.items():
            self.runner.resize(index, array.shape)
        self.runner.allocate()
        given, can = self._given.items(), self.runner.can_overwrite
        shared = {at: array for at, array in self._made.items() if all(can(i, at) for i, its in given if its is array)}
        placed = set(self.runner.use_memory(self._given | shared))
        #: Inputs that are copied before a run, and outputs after it, as they could not be placed.
        self._before = [(index, array) for index, array in given if index not in placed]
        self._after = [(index, array) for index, array in self._made.items() if index not in placed or index not in shared]
        self._copied = sum(array.nbytes for _, array in (*self._before, *self._after) if id(array) in self._counted)
        self._generation = self.runner.subgraph.generation


class Step:
    """Reads tokens and updates the state (KV caches): a signature of a decoder (prefill or decode), and what runs before and after it.

    Args:
        parts: the signatures, in order; what one makes is an input of the next ones that take it.
        states: for each state input, the output that is its next value, and the array of both, which other steps share.
        length, context: how many tokens a run processes, and how many the state has room for.
        window, embed: how many tokens local attention looks back to, 0 for all; and functions that compute embeddings, by an input's role.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        states: Mapping[str, tuple[str, Array]],
        length: int,
        context: int,
        window: int,
        embed: Mapping[str, Embed],
    ) -> None:
        self.parts, self._length, self._context, self._window, self._embed = parts, length, context, window, embed
        self._logits = next(((part, part.outputs["logits"]) for part in parts if "logits" in part.outputs), None)
        #: The arrays that each run fills, by what they are for.
        self._filled: list[tuple[str, Array]] = []
        given, made, wanted = {name: array for name, (_, array) in states.items()}, dict(states.values()), _read(parts)
        for each, name in [(part, name) for part in parts for name in part.inputs if name not in states]:
            if name not in given:
                given[name] = self._array(each, name, name in wanted)
            if name not in wanted:
                made[name] = given[name]
        roles = {role for role, _ in self._filled}
        if "positions" not in roles or not roles & {"tokens", "embeddings"}:
            raise ModelError(f"The step '{parts[0].key}' of the model takes no positions, or neither tokens nor embeddings.")
        for part in parts:
            part.place(given, made, [array for _, array in states.values()])

    def _array(self, part: Part, name: str, is_filled: bool) -> Array:
        """Return an array for an input, with sizes for those that callers choose; those of a mask are its last."""
        role, dtype, shape = _ROLES.get(name, ""), part.inputs[name]["dtype"], part.inputs[name]["shape_signature"].tolist()
        is_mask, unknown = role.endswith("mask"), not role or (role.endswith("embeddings") and role not in self._embed)
        if is_filled and (unknown or (is_mask and np.dtype(dtype).name not in _HIDDEN)):
            raise ModelError(
                f"The signature '{part.key}' takes '{name}', which no part of the bundle gives; run it with LiteRT-LM."
            )
        sizes = iter([self._context, self._length] if is_mask else [self._length])
        chosen = [next(sizes, 1) if size < 0 else size for size in (reversed(shape) if is_mask else shape)]
        shape = chosen[::-1] if is_mask else chosen
        if np.prod(shape, dtype=np.float64) > _MOST_ELEMENTS:
            raise LimitError(f"The input '{name}' of the signature '{part.key}' would have the shape {shape}.")
        array = np.zeros(shape, dtype)
        self._filled += [(role, array)] * is_filled
        return array

    def run(self, tokens: Sequence[int], start: int) -> None:
        """Process tokens, at most as many as a run does, and update the state; `start` tokens were processed before."""
        self._fill(tokens, start)
        for part in self.parts:
            part.run()

    def logits(self) -> Array:
        """Return the logits after the last token, a view that the next run overwrites."""
        if self._logits is None:
            raise ModelError(f"The step '{self.parts[0].key}' of the model has no output 'logits'.")
        part, index = self._logits
        found: Any = part.runner.tensor(index).data
        return found.reshape(-1, found.shape[-1])[-1]  # type: ignore[no-any-return]

    def _fill(self, tokens: Sequence[int], start: int) -> None:
        count = len(tokens)
        for role, array in self._filled:
            flat = array.reshape(-1)
            if role == "tokens":
                flat[:count], flat[count:] = tokens, 0
            elif role == "positions":  # padding goes on counting: what it writes lies behind, where no token attends to it
                flat[:] = np.arange(start, start + self._length)
            elif role == "start":
                flat[:] = start
            elif role == "valid":
                flat[:count], flat[count:] = 1, 0
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

    def __init__(self, interpreter: Interpreter, role: str) -> None:
        #: By how many tokens they take, 0 for any number: the runner, and its input and output.
        self._signatures: dict[int, tuple[Any, str, str]] = {}
        for key, names in interpreter.get_signature_list().items():
            if len(names["inputs"]) == len(names["outputs"]) == 1:
                runner, name = interpreter.get_signature_runner(key), names["inputs"][0]
                shape = runner.get_input_details()[name]["shape_signature"]
                self._signatures[0 if -1 in shape else int(np.prod(shape))] = runner, name, names["outputs"][0]
        if not self._signatures:
            raise ModelError(f"The model of {role} has no signature with one input and one output, as such models have.")

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


def _read(parts: Sequence[Part]) -> dict[str, dict[str, Any]]:
    """Return the details of the inputs of signatures that run in this order, but of those that an earlier one makes."""
    found: dict[str, dict[str, Any]] = {}
    made: set[str] = set()
    for part in parts:
        found.update((name, each) for name, each in part.inputs.items() if name not in made and name not in found)
        made.update(part.outputs)
    return found


def _context(shapes: Mapping[str, Array], states: Iterable[str], metadata: Metadata) -> int:
    """Return how many tokens the caches are to have room for: what masks or else caches have, at most those of the metadata."""
    most, axes = metadata.most_tokens, {state.decode_input: state.axis for state in metadata.states}
    sizes = [shape[-1] for name, shape in shapes.items() if _ROLES.get(name) == "mask" and shape.size]
    for name in states if not sizes else ():
        if shapes[name].size:
            axis = axes.get(name, -1)
            sizes.append(shapes[name][axis] if 0 <= axis < shapes[name].size else shapes[name].max())
    size = int(next((size for size in sizes if size > 0), most if most > 0 else _USUAL_CONTEXT))
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
