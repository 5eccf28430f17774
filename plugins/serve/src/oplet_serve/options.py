"""Options of a served model: the `parameters.extra` of its model-settings.json, validated."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from oplet import Limits
from oplet.errors import ModelError

__all__ = ["Options"]


@dataclass(frozen=True)
class Options:
    """Validated options of a served model.

    Attributes:
        signature: the signature's key; None for the only one, or the first subgraph.
        delegates: the delegates, "NAME:key=value" each, or "auto", as `Predictor` takes them.
        num_threads: threads of each interpreter.
        workers: predictions that run at the same time.
        max_queue: the most requests that run or wait; further ones get status 429.
        max_rows: rows of one request.
        max_seconds: time limit in seconds of one request's prediction, checked between nodes and rows.
        max_tensor_bytes: bytes of one tensor, and of one output of a request.
        max_arena_bytes: bytes of all tensors of one interpreter.
        state: pairs (input, output) of stateful sequences: the output is the input's next value; empty to pair tensors of equal
            name, type and shape.
        max_sequences: the most sequences whose state is kept.
        max_sequence_bytes: the most bytes of the state of all sequences.
        sequence_seconds: seconds without a request, after which a sequence ends.
    """

    signature: str | None = None
    delegates: tuple[str, ...] = ()
    num_threads: int = 1
    workers: int = os.cpu_count() or 1
    max_queue: int = 256
    max_rows: int = 4096
    max_seconds: float = 60.0
    max_tensor_bytes: int = 1 << 30
    max_arena_bytes: int = 4 << 30
    state: tuple[tuple[str, str], ...] = ()
    max_sequences: int = 64
    max_sequence_bytes: int = 1 << 30
    sequence_seconds: float = 60.0

    @classmethod
    def read(cls, model: str, extra: Mapping[str, Any] | None) -> Options:
        """Read and validate a model's options.

        Args:
            model: the model's name, for messages.
            extra: `parameters.extra` of the model's MLServer settings.

        Raises:
            ModelError: an option is unknown or has an invalid value.
        """
        given = dict(extra or {})
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(map(str, given)) - known):
            raise ModelError(f"The model '{model}' has the option {unknown[0]!r}; known are {', '.join(sorted(known))}.")
        if isinstance(given.get("delegates"), str):
            given["delegates"] = (given["delegates"],)
        if isinstance(given.get("state"), Mapping):
            given["state"] = tuple(given["state"].items())
        for name, value in given.items():
            if name == "signature":
                fits = value is None or isinstance(value, str)
            elif name == "delegates":
                fits = isinstance(value, (list, tuple)) and all(isinstance(each, str) for each in value)
            elif name == "state":
                fits = isinstance(value, tuple) and all(isinstance(each, str) for pair in value for each in pair)
            else:
                kinds = (int, float) if name in ("max_seconds", "sequence_seconds") else (int,)
                fits = isinstance(value, kinds) and not isinstance(value, bool) and 0 < value < 1 << 62
            if not fits:
                raise ModelError(f"The option {name!r} of the model '{model}' is {value!r:.80}, which it cannot be.")
        if "delegates" in given:
            given["delegates"] = tuple(given["delegates"])
        return cls(**given)

    @property
    def limits(self) -> Limits:
        """Return the resource limits for each interpreter."""
        return Limits(
            max_arena_bytes=self.max_arena_bytes, max_tensor_bytes=self.max_tensor_bytes, max_seconds=float(self.max_seconds)
        )
