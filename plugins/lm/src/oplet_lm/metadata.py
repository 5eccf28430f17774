"""The metadata of a language model: special tokens, sampling, templates and the buffers that keep its state.

Source of the fields: LiteRT-LM's llm_metadata.proto and executor_metadata.proto (litert-lm-builder 0.18.1), MediaPipe's llm_params.proto.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from oplet.errors import ModelError
from oplet.schema.protobuf import fields, signed, varints

__all__ = ["Metadata", "Sampling", "StateBuffer", "Token", "read_metadata"]

#: A special token: the ids that it is made of, or its text.
Token = tuple[int, ...] | str
_TOP_K, _GREEDY = 1, 3
_ROLES = {1: "user", 2: "model", 3: "system"}
#: The chat template of models that have prefixes and suffixes, which these are put into.
_AFFIXES = (
    "{%% set affixes = %s %%}{%% for m in messages %%}{%% set around = affixes[{'assistant': 'model'}.get(m.role, m.role)] or ['', ''] %%}"
    "{{ around[0] }}{%% if m.content is string %%}{{ m.content }}{%% else %%}{%% for part in m.content or [] %%}{{ part.text }}{%% endfor %%}"
    "{%% endif %%}{{ around[1] }}{%% endfor %%}{{ (affixes.model or [''])[0] }}"
)
_MOST_FIELDS = 1 << 14
#: What makes values of fields: integers of varints, the others of bytes.
_KINDS: Mapping[Any, Callable[[Any], Any]] = {
    int: lambda value: signed(value, 32), str: lambda value: value.decode("utf-8", "replace"),
    float: lambda value: struct.unpack("<f", value)[0] if len(value) == 4 else 0.0,
}  # fmt: skip


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


class StateBuffer(NamedTuple):
    """A state tensor (such as a KV cache) that each step passes to the next: its names in the signatures, kind and axis of tokens."""

    prefill_input: str = ""
    prefill_output: str = ""
    decode_input: str = ""
    decode_output: str = ""
    kind: int = 0
    axis: int = -1


@dataclass(frozen=True)
class Metadata:
    """Metadata of a bundle's language model: special tokens, stop sequences, sampling, chat template, state buffers, and the window of local
    attention (0 for none).
    """

    start: Token | None = None
    stops: list[Token] = field(default_factory=list)
    sampling: Sampling = Sampling()
    most_tokens: int = 0
    template: str = ""
    suppressed: tuple[int, ...] = ()
    cache_value: int = 0
    states: tuple[StateBuffer, ...] = ()
    window: int = 0


def read_metadata(data: bytes, executor: bytes = b"") -> Metadata:
    """Parse an LlmMetadata message, or the LlmParameters message of MediaPipe's bundles, and an ExecutorMetadata message."""
    try:
        return _read(_Message(data), _Message(executor).all(1, _Message))
    except ValueError as error:
        raise ModelError(f"The bundle's metadata is damaged: {error}.") from error


def _read(found: _Message, executors: list[_Message]) -> Metadata:
    if found.all(2, int) or found.all(4, int) or found.all(5, str):  # LlmParameters
        start = found.last(6, "") or tuple(found.all(4, int)[-1:])
        return Metadata(start or None, found.all(5, str), template=_template(dict(zip(["user"], found.all(8, _Message))), 2))
    starts, stops = ([token for each in found.all(number, _Message) if (token := _token(each))] for number in (1, 2))
    roles = {role: each for of in found.all(3, _Message) for number, role in _ROLES.items() for each in of.all(number, _Message)}
    states = [state for each in executors for state in each.all(2, _Message)]
    return Metadata(
        start=None if not starts else starts[0][:1] if isinstance(starts[0], tuple) else starts[-1],  # of ids the first is taken
        stops=stops,
        sampling=_sampling(found.all(4, _Message)),
        most_tokens=found.last(5, 0),
        template=found.last(7, "") or _template(roles, 1),
        suppressed=tuple(number for each in found.all(9, _Message) for number in each.packed(1)),
        cache_value=found.last(10, 0),
        states=tuple(StateBuffer(*(each.last(*field) for field in zip((1, 2, 3, 4, 6, 7), StateBuffer()))) for each in states),
        window=max([0, *(mask.last(3, 0) for each in executors for mask in each.all(3, _Message))]),
    )


class _Message:
    """A message's fields by their numbers; values of another wire type than they are asked for are left out."""

    def __init__(self, data: bytes) -> None:
        self._fields = [*fields(data, _MOST_FIELDS)]

    def all(self, number: int, kind: Callable[[Any], Any]) -> list[Any]:
        """Return all values of a field that are of a kind: `int`, `float`, `str`, `bytes` or `_Message`."""
        make = _KINDS.get(kind, kind)
        return [make(value) for its, value in self._fields if its == number and isinstance(value, int) == (kind is int)]

    def last(self, number: int, default: Any) -> Any:
        """Return the last value of the type of `default`."""
        return [default, *self.all(number, type(default))][-1]

    def packed(self, number: int) -> list[int]:
        """Return repeated integers, packed or not."""
        return self.all(number, int) + [signed(each, 32) for value in self.all(number, bytes) for each in varints(value)]


def _token(message: _Message) -> Token:
    return tuple(number for ids in message.all(1, _Message) for number in ids.packed(1)) or str(message.last(2, ""))


def _template(roles: Mapping[str, _Message], first: int) -> str:
    """Return the chat template that puts around a message the prefix and suffix of its role, fields from `first` on; "" without roles."""
    affixes = {role: (each.last(first, ""), each.last(first + 1, "")) for role, each in roles.items()}
    return _AFFIXES % json.dumps(affixes, ensure_ascii=False) if affixes else ""


def _sampling(messages: list[_Message]) -> Sampling:
    found = messages[-1] if messages else _Message(b"")
    if (kind := found.last(1, 0)) in (0, _GREEDY):
        return Sampling()
    top_p, temperature = found.last(3, 0.0), found.last(4, 0.0)
    share = 1.0 if kind == _TOP_K else top_p if 0 <= top_p <= 1 else 0.0
    temperature = temperature if 0 <= temperature < float("inf") else 0.0
    return Sampling(max(found.last(2, 0), 0), share, temperature, *found.all(5, int)[-1:])
