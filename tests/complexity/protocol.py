"""What the process that runs hostile models is asked, and what it answers."""

from __future__ import annotations

import pickle
import struct
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from tests.complexity.feeding import Feed

__all__ = ["Answer", "Request", "receive", "send"]

_HEAD = struct.Struct("<q")


@dataclass(frozen=True)
class Request:
    """A model to run.

    Attributes:
        seconds: `Limits.max_seconds`, None for no limit.
    """

    model: bytes
    feed: Feed
    seconds: float | None = 2.0


@dataclass
class Answer:
    """What came of a model.

    Attributes:
        kind: "ok"; "refused", by an error of oplet.errors; "accident", the same because numpy stumbled; "escaped", another
            exception; "died" or "hung", told by the parent.
        stage: "load", "allocate", "feed", "invoke" or "read".
        error: the class of the error.
        place: where an accident or another exception was raised, or what the process was at when it hung.
        seconds: CPU seconds of each stage.
        grown: by how many bytes the process grew from before the model to its peak, reading the outputs apart.
        asked: whether it asked for more than 1 GB of address space.
        warned: a RuntimeWarning that came.
    """

    kind: str
    stage: str = "load"
    error: str = ""
    place: str = ""
    message: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    grown: int = 0
    asked: bool = False
    warned: str = ""

    @property
    def slowest(self) -> float:
        """CPU seconds of the longest call; filling the inputs is not the model's work."""
        return max((value for stage, value in self.seconds.items() if stage != "feed"), default=0.0)

    @property
    def accepted(self) -> bool:
        """Whether the model came as far as to be run."""
        return self.kind == "ok" or self.error == "DeadlineError" or self.kind == "hung"


def send(pipe: BinaryIO, item: Any) -> None:
    """Write an item."""
    body = pickle.dumps(item)
    pipe.write(_HEAD.pack(len(body)) + body)
    pipe.flush()


def receive(pipe: BinaryIO) -> Any:
    """Read an item; None at the end."""
    head = pipe.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    return pickle.loads(pipe.read(_HEAD.unpack(head)[0]))
