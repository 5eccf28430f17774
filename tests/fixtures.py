"""A pytest plugin: fixtures that the tests of several packages use, and the same random numbers for a test in any order."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from tests.places import EXAMPLES

if TYPE_CHECKING:
    from tests.differential.harness import LiteRT


@cache
def _generators(module: Any) -> list[tuple[np.random.Generator, Any]]:
    """The generators of random numbers that a module's tests share, with their states before the first test."""
    return [(each, each.bit_generator.state) for each in vars(module).values() if isinstance(each, np.random.Generator)]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Have them begin anew: what a test draws does not depend on which tests of its module ran before it in the same process."""
    for generator, state in _generators(item.module) if isinstance(item, pytest.Function) else ():
        generator.bit_generator.state = state


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
def digits(examples: Path) -> Path:
    """The quantized model that tells digits apart."""
    return examples / "digits" / "digits_int8.tflite"


@pytest.fixture(scope="module")
def litert() -> Iterator[LiteRT]:
    """LiteRT in a process of its own, which may die of a model; a test that asks for it is skipped where LiteRT is missing."""
    pytest.importorskip("ai_edge_litert.interpreter")
    from tests.differential.harness import LiteRT

    server = LiteRT()
    yield server
    server.close()


@pytest.fixture
def oplet(capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[..., Ran]]:
    """Runs the command in this process: `oplet("run", model)`."""
    from oplet_tools.cli.main import main

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


@pytest.fixture
def comparing(oplet: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Callable[..., Ran]]:
    """`comparing(name=Delegate)` gives a function that runs `oplet compare` on the bytes of a model, with these delegates installed."""
    from oplet import PluginManager

    def among(**delegates: Any) -> Callable[..., Ran]:
        manager = PluginManager()
        for name, delegate in delegates.items():
            manager.registry().add(name, delegate)
        monkeypatch.setattr("oplet_tools.cli.settings.Settings.plugins", lambda self, libraries=None: manager)

        def compare(model: bytes, *arguments: object) -> Ran:
            path = tmp_path / "model.tflite"
            path.write_bytes(model)
            ran: Ran = oplet("compare", path, *arguments)
            return ran

        return compare

    return among
