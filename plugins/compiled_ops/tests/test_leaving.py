"""The end of a process: what it left to be compiled is compiled, and nobody hears of it."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.children import run_child

from oplet_compiled_ops.library import processes
from oplet_compiled_ops.library.kernels import Kernel
from oplet_testing import Spec, one_op_model

SHORT = """
import sys
from oplet import Interpreter
interpreter = Interpreter(sys.argv[1])
interpreter.allocate_tensors()
interpreter.invoke()
"""


class Asked:
    """A process that compiles and only notes what it is asked for."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.stdin, self.stdout = self, self
        self.answer = threading.Event()

    def write(self, line: bytes) -> None:
        self.names.append(line.decode())

    def flush(self) -> None:
        pass

    close = flush

    def readline(self) -> bytes:
        self.answer.wait(60)
        return b""

    def poll(self) -> int | None:
        return None

    def kill(self) -> None:
        self.answer.set()

    def wait(self, *_: Any) -> int:
        return 0


def kernels(count: int) -> list[Kernel]:
    return [Kernel(lambda x: None, "void(f4[::1])", most_on_disk=1 + number) for number in range(count)]


def test_who_leaves_while_a_compiler_is_started_waits_for_it_and_leaves_it_all(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    started, asked = threading.Event(), Asked()

    @contextmanager
    def slowly(*_: Any, empty: str, **__: Any) -> Iterator[Asked]:
        assert os.listdir(empty) == []
        started.wait(60)
        yield asked

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(processes, "python_process", slowly)
    monkeypatch.setattr(processes, "_IDLE", 0.05)
    monkeypatch.setattr(processes, "_cores", lambda: 2)
    compilers = processes.Compilers()
    for kernel in kernels(5):
        assert compilers.want(kernel)
    threading.Timer(0.2, started.set).start()
    compilers.leave()
    end = time.monotonic() + 60
    while len(asked.names) < 5 and time.monotonic() < end:  # one is with the thread that leads
        time.sleep(0.01)
    assert len(asked.names) == 5
    asked.answer.set()
    while compilers._leaders and time.monotonic() < end:
        time.sleep(0.01)
    assert caplog.records == []
    assert os.listdir(tmp_path) == []


def test_a_compiler_that_cannot_be_started_is_told_while_the_process_lives_and_not_at_its_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(processes, "python_process", refuse)
    monkeypatch.setattr(processes, "_IDLE", 0.05)
    for leaving in (True, False):
        compilers = processes.Compilers()
        compilers._leaving = leaving
        [kernel] = kernels(1)
        compilers.want(kernel)
        compilers.wait(kernel)
        assert bool(kernel.error) is not leaving
    assert ["cannot be started" in record.getMessage() for record in caplog.records] == [True]


@pytest.mark.sweep
@pytest.mark.parametrize("number", range(4))
def test_a_short_first_run_says_nothing_leaves_nothing_behind_and_serves_the_next(number: int, tmp_path: Path) -> None:
    model = tmp_path / "model.tflite"
    model.write_bytes(one_op_model("LOGISTIC", [Spec("float32", (1, 4096))], [Spec("float32", (1, 4096))]))
    places = SimpleNamespace(**{name: tmp_path / name for name in ("caches", "temporary")})
    places.temporary.mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OPLET_")}
    environment |= {"OPLET_CACHE_DIR": str(places.caches), "TMPDIR": str(places.temporary)}
    done = run_child([sys.executable, "-c", SHORT, str(model)], env=environment)
    assert (done.stdout, done.stderr) == ("", "")
    for _ in range(6000):  # ten minutes, on a busy machine
        if not list(places.temporary.iterdir()):  # the process that compiles takes its folder with it
            break
        time.sleep(0.1)
    assert list(places.temporary.iterdir()) == []
    assert list((places.caches / "kernels").glob("LOGISTIC-*.code"))
