"""The metadata of a language model: special tokens, sampling, templates and the buffers that keep its state.

Source of the fields: LiteRT-LM's llm_metadata.proto and executor_metadata.proto (litert-lm-builder 0.18.1), MediaPipe's llm_params.proto.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from oplet.errors import ModelError
from oplet.schema.protobuf import fields, signed, varints

__all__ = [
    "Affixes",
    "ExecutorMetadata",
    "Metadata",
    "Sampling",
    "StateBuffer",
    "Token",
    "read_executor_metadata",
    "read_metadata",
]

#: A special token: the ids that it is made of, or its text.
Token = tuple[int, ...] | str
_TOP_K, _GREEDY = 1, 3
_ROLES = {1: "user", 2: "model", 3: "system"}
_MOST_FIELDS = 1 << 14


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


class Affixes(NamedTuple):
    """Prefix and suffix that a prompt puts around a message of one role."""

    prefix: str = ""
    suffix: str = ""


@dataclass(frozen=True)
class Metadata:
    """Metadata of a bundle's language model: special tokens, stop sequences, message affixes, sampling, chat template."""

    start: Token | None = None
    stops: list[Token] = field(default_factory=list)
    affixes: Mapping[str, Affixes] = field(default_factory=dict)
    sampling: Sampling = Sampling()
    most_tokens: int = 0
    template: str = ""
    suppressed: tuple[int, ...] = ()
    cache_value: int = 0


class StateBuffer(NamedTuple):
    """A state tensor (such as a KV cache) that each step passes to the next: its names in the signatures, kind and axis of tokens."""

    prefill_input: str = ""
    prefill_output: str = ""
    decode_input: str = ""
    decode_output: str = ""
    kind: int = 0
    axis: int = -1


class ExecutorMetadata(NamedTuple):
    """Metadata of a bundle on running its model: the state buffers, and the window of local attention (0 for none)."""

    states: tuple[StateBuffer, ...] = ()
    window: int = 0


@contextmanager
def _refusing_damage() -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise ModelError(f"The bundle's metadata is damaged: {error}.") from error


@_refusing_damage()
def read_metadata(data: bytes) -> Metadata:
    """Parse an LlmMetadata message, or the LlmParameters message of MediaPipe's bundles."""
    found = _Message(data)
    if found.numbers(2) or found.numbers(4) or found.texts(5):  # LlmParameters
        start = found.text(6) or tuple(found.numbers(4)[-1:])
        return Metadata(start or None, found.texts(5), dict(zip(["user"], (_affixes(each, 2) for each in found.messages(8)))))
    starts, stops = ([token for each in found.messages(number) if (token := _token(each))] for number in (1, 2))
    roles = [(role, each) for of in found.messages(3) for number, role in _ROLES.items() for each in of.messages(number)]
    return Metadata(
        start=starts[-1] if starts else None,
        stops=stops,
        affixes={role: _affixes(each, 1) for role, each in roles},
        sampling=_sampling(found.messages(4)),
        most_tokens=found.number(5),
        template=found.text(7),
        suppressed=tuple(number for each in found.messages(9) for number in each.packed(1)),
        cache_value=found.number(10),
    )


@_refusing_damage()
def read_executor_metadata(data: bytes) -> ExecutorMetadata:
    """Parse an ExecutorMetadata message."""
    executors = _Message(data).messages(1)
    states = [state for each in executors for state in each.messages(2)]
    windows = [mask.number(3) for each in executors for mask in each.messages(3)]
    buffers = [
        StateBuffer(each.text(1), each.text(2), each.text(3), each.text(4), each.number(6), each.number(7, -1)) for each in states
    ]
    return ExecutorMetadata(tuple(buffers), max([0, *windows]))


class _Message:
    """A message's fields by their numbers; values of another wire type than they are asked for are left out."""

    def __init__(self, data: bytes) -> None:
        self._fields: dict[int, list[int | bytes]] = {}
        for number, value in fields(data, _MOST_FIELDS):
            self._fields.setdefault(number, []).append(value)

    def _bytes(self, number: int) -> list[bytes]:
        return [value for value in self._fields.get(number, ()) if isinstance(value, bytes)]

    def messages(self, number: int) -> list[_Message]:
        return [*map(_Message, self._bytes(number))]

    def texts(self, number: int) -> list[Token]:
        return [value.decode("utf-8", "replace") for value in self._bytes(number)]

    def text(self, number: int) -> str:
        return str(next(reversed(self.texts(number)), ""))

    def numbers(self, number: int) -> list[int]:
        return [signed(value, 32) for value in self._fields.get(number, ()) if isinstance(value, int)]

    def number(self, number: int, default: int = 0) -> int:
        return next(reversed(self.numbers(number)), default)

    def packed(self, number: int) -> list[int]:
        """Return repeated integers, packed or not."""
        return self.numbers(number) + [signed(each, 32) for value in self._bytes(number) for each in varints(value)]

    def single(self, number: int) -> float:
        value = next(reversed(self._bytes(number)), b"")
        return float(struct.unpack("<f", value)[0]) if len(value) == 4 else 0.0


def _token(message: _Message) -> Token:
    return tuple(number for ids in message.messages(1) for number in ids.packed(1)) or message.text(2)


def _affixes(message: _Message, first: int) -> Affixes:
    return Affixes(message.text(first), message.text(first + 1))


def _sampling(messages: list[_Message]) -> Sampling:
    kind = messages[-1].number(1) if messages else 0
    if kind in (0, _GREEDY):
        return Sampling()
    found = messages[-1]
    top_p, temperature, seeds = found.single(3), found.single(4), found.numbers(5)
    share = 1.0 if kind == _TOP_K else top_p if 0 <= top_p <= 1 else 0.0
    warm = temperature if 0 <= temperature < float("inf") else 0.0
    return Sampling(max(found.number(2), 0), share, warm, seeds[-1] if seeds else None)
