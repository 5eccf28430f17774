"""The metadata of a language model: special tokens, sampling, templates and the buffers that keep its state.

Source of the fields: LiteRT-LM's llm_metadata.proto and executor_metadata.proto (litert-lm-builder 0.18.1), MediaPipe's llm_params.proto.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from oplet.errors import ModelError
from oplet.schema.protobuf import signed, varints
from oplet_lm.bundles.wire import fields

__all__ = ["Affixes", "ExecutorMetadata", "Metadata", "Sampling", "StateBuffer", "read_executor_metadata", "read_metadata"]

#: A special token: the ids that it is made of, or its text.
Token = tuple[int, ...] | str
_TOP_K, _GREEDY = 1, 3
_ROLES = {1: "user", 2: "model", 3: "system"}
_LINEAR_ATTENTION = 5


@dataclass(frozen=True)
class Sampling:
    """Parameters of sampling the next token.

    Attributes:
        top_k: the number of most likely tokens to draw from; 0 for all.
        top_p: the cumulative probability of the most likely tokens to draw from; 0 for the most likely token alone.
        temperature: the divisor of the logits; 0 for the most likely token alone.
        seed: the seed of the random generator; None for an unpredictable one.
    """

    top_k: int = 1
    top_p: float = 1.0
    temperature: float = 1.0
    seed: int | None = None


@dataclass(frozen=True)
class Affixes:
    """Prefix and suffix that a prompt puts around a message of one role."""

    prefix: str = ""
    suffix: str = ""


@dataclass
class Metadata:
    """Metadata of a bundle's language model: special tokens, stop sequences, message affixes, sampling, chat template."""

    start: Token | None = None
    stops: list[Token] = field(default_factory=list)
    affixes: dict[str, Affixes] = field(default_factory=dict)
    sampling: Sampling = field(default_factory=Sampling)
    most_tokens: int = 0
    template: str = ""
    suppressed: tuple[int, ...] = ()
    cache_value: int = 0


@dataclass(frozen=True)
class StateBuffer:
    """A state tensor (such as a KV cache) that each step passes to the next: its names in the signatures, kind and axis of tokens."""

    prefill_input: str = ""
    prefill_output: str = ""
    decode_input: str = ""
    decode_output: str = ""
    kind: int = 0
    axis: int = -1

    @property
    def is_recurrent(self) -> bool:
        """Whether the state has no entry for each token (linear attention), so that tokens cannot be removed from it."""
        return self.kind == _LINEAR_ATTENTION


@dataclass(frozen=True)
class ExecutorMetadata:
    """Metadata of a bundle on running its model: the state buffers, and the window of local attention (0 for none)."""

    states: tuple[StateBuffer, ...] = ()
    window: int = 0


def read_metadata(data: bytes) -> Metadata:
    """Parse an LlmMetadata message, or the LlmParameters message of MediaPipe's bundles.

    Raises:
        ModelError: the message is damaged.
    """
    found = list(fields(data))
    if any(
        (number in (2, 4) and isinstance(value, int)) or (number == 5 and isinstance(value, bytes)) for number, value in found
    ):
        return _of_parameters(found)
    made = Metadata()
    for number, value in found:
        if number == 5 and isinstance(value, int):
            made.most_tokens = signed(value, 32)
        elif number == 10 and isinstance(value, int):
            made.cache_value = signed(value, 32)
        if not isinstance(value, bytes):
            continue
        if number == 1:
            made.start = _token(value)
        elif number == 2:
            token = _token(value)
            if token:
                made.stops.append(token)
        elif number == 3:
            made.affixes = {
                _ROLES[role]: _affixes(piece, 1) for role, piece in fields(value) if role in _ROLES and isinstance(piece, bytes)
            }
        elif number == 4:
            made.sampling = _sampling(value)
        elif number == 7:
            made.template = _text(value)
        elif number == 9:
            made.suppressed = _numbers(value)
    return made


def _of_parameters(found: Sequence[tuple[int, int | bytes]]) -> Metadata:
    made = Metadata()
    for number, value in found:
        if number == 4 and isinstance(value, int):
            made.start = (signed(value, 32),)
        if not isinstance(value, bytes):
            continue
        if number == 6:
            made.start = _text(value)
        elif number == 5:
            made.stops.append(_text(value))
        elif number == 8:
            made.affixes["user"] = _affixes(value, 2)
    return made


def read_executor_metadata(data: bytes) -> ExecutorMetadata:
    """Parse an ExecutorMetadata message.

    Raises:
        ModelError: the message is damaged.
    """
    states: list[StateBuffer] = []
    window = 0
    for number, executor in fields(data):
        if number != 1 or not isinstance(executor, bytes):
            continue
        for inner, value in fields(executor):
            if not isinstance(value, bytes):
                continue
            if inner == 2:
                states.append(_state(dict(fields(value))))
            elif inner == 3:
                size = dict(fields(value)).get(3, 0)
                window = signed(size, 32) if isinstance(size, int) else 0
    return ExecutorMetadata(tuple(states), max(window, 0))


def _state(held: Mapping[int, int | bytes]) -> StateBuffer:
    prefill, prefilled, decode, decoded = (_text(held.get(number, b"")) for number in (1, 2, 3, 4))
    kind, axis = held.get(6, 0), held.get(7, -1)
    return StateBuffer(
        prefill,
        prefilled,
        decode,
        decoded,
        kind if isinstance(kind, int) else 0,
        axis if isinstance(axis, int) and axis < 8 else -1,
    )


def _token(data: bytes) -> Token | None:
    for number, value in fields(data):
        if isinstance(value, bytes):
            return _numbers(value) if number == 1 else _text(value)
    return None


def _numbers(data: bytes) -> tuple[int, ...]:
    """Return the numbers of a TokenIds message, packed or not."""
    found: list[int] = []
    for number, value in fields(data):
        if number != 1:
            continue
        if isinstance(value, int):
            found.append(signed(value, 32))
            continue
        try:
            found.extend(signed(each, 32) for each in varints(value))
        except ValueError as error:
            raise ModelError(f"The bundle's metadata is damaged: {error}.") from error
    return tuple(found)


def _affixes(data: bytes, first: int) -> Affixes:
    held = {number: _text(value) for number, value in fields(data) if isinstance(value, bytes)}
    return Affixes(held.get(first, ""), held.get(first + 1, ""))


def _sampling(data: bytes) -> Sampling:
    held = dict(fields(data))
    kind, k, seed = (_integer(held.get(number, 0)) for number in (1, 2, 5))
    top_p, temperature = (_float(held.get(number, bytes(4))) for number in (3, 4))
    if kind == _GREEDY or not kind:
        return Sampling()
    share = top_p if kind != _TOP_K and 0 <= top_p <= 1 else 1.0 if kind == _TOP_K else 0.0
    warm = temperature if 0 <= temperature < float("inf") else 0.0
    return Sampling(max(k, 0), share, warm, seed if 5 in held else None)


def _integer(value: bytes | int) -> int:
    if isinstance(value, bytes):
        raise _no_sampler()
    return signed(value, 32)


def _float(value: bytes | int) -> float:
    if isinstance(value, int) or len(value) != 4:
        raise _no_sampler()
    return float(struct.unpack("<f", value)[0])


def _no_sampler() -> ModelError:
    return ModelError("The bundle's metadata is damaged: its sampler's parameters are no numbers.")


def _text(data: bytes | int) -> str:
    return data.decode("utf-8", "replace") if isinstance(data, bytes) else ""
