"""A watchdog: a test that hangs fails, and says where."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from types import FrameType

import pytest
from tests.kinds import kind_of

#: Seconds; many times what any of these tests takes.
PATIENCE = 600


class Hang(BaseException):
    """Nothing may catch it."""


@pytest.fixture(autouse=True)
def watchdog(request: pytest.FixtureRequest) -> Iterator[None]:
    """Interrupt a test that does not end."""
    if not hasattr(signal, "SIGALRM") or kind_of(request.node) != "unit":
        yield
        return

    def bark(number: int, frame: FrameType | None) -> None:
        raise Hang(f"{request.node.name} took more than {PATIENCE} s")

    before = signal.signal(signal.SIGALRM, bark)
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(autouse=True, scope="session")
def packages_are_imported() -> None:
    """The first interpreter of a process imports every package that is installed, which is no model's fault."""
    from tests.places import EXAMPLES

    from oplet import Interpreter

    Interpreter(str(EXAMPLES / "digits" / "digits_int8.tflite")).allocate_tensors()
