"""Fixtures of the whole-system tests."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.places import EXAMPLES


class Ran(NamedTuple):
    """What a command line left behind."""

    code: int
    out: str
    err: str


@pytest.fixture
def examples() -> Path:
    """The folder of the examples."""
    return EXAMPLES


@pytest.fixture
def oplet(capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[..., Ran]]:
    """Runs the command in this process: `oplet("run", model)`."""
    from oplet.cli.main import main

    logger = logging.getLogger("oplet")
    before = logger.handlers, logger.propagate

    def run(*arguments: object) -> Ran:
        with pytest.raises(SystemExit) as exit:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        # sys.exit(text) prints the text when the process ends, which a test does not get to.
        code, text = (1, f"{exit.value.code}\n") if isinstance(exit.value.code, str) else (exit.value.code or 0, "")
        return Ran(code, captured.out, captured.err + text)

    yield run
    logger.handlers, logger.propagate = before
