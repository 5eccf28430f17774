"""A process that runs hostile models, one after the other, and says how long each step took and how much memory it needed.

It reads pickled requests from standard input and answers on standard output. Seconds are CPU seconds of this process: the machine
may be busy with something else.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import os
import resource
import sys
import time
import traceback
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.complexity.feeding import feed
from tests.complexity.protocol import Answer, Request, receive, send

__all__ = ["ENGINES"]

#: The plugins of each engine.
ENGINES = {
    "numpy": ["builtin_ops", "coral_ops", "larq_ops", "signal_ops", "mediapipe_ops"],
    "compiled": ["compiled_ops", "builtin_ops", "coral_ops", "larq_ops", "signal_ops", "mediapipe_ops"],
    "custom": ["builtin_ops", "flex_ops", "text_ops"],
}

#: Address space beyond what the process has before a model.
_ROOM = 1 << 30


class _Memory:
    """The process's memory: resident now, and at its peak since `reset`."""

    def __init__(self) -> None:
        self._clear = os.open("/proc/self/clear_refs", os.O_WRONLY)
        with suppress(OSError):
            self._trim = ctypes.CDLL(None).malloc_trim
        self.base = 0

    def reset(self) -> None:
        if self.now("VmRSS") > self.base + (16 << 20):
            gc.collect()
            self._trim(0)
        os.write(self._clear, b"5")
        self.base = self.now("VmRSS")
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (self.now("VmSize") + _ROOM, hard))

    def grown(self) -> int:
        return self.now("VmHWM") - self.base

    @staticmethod
    def now(what: str) -> int:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(what + ":"):
                return int(line.split()[1]) << 10
        return 0


def _run(request: Request) -> Answer:
    from oplet import Interpreter, Limits
    from oplet.errors import OpletError

    limits = Limits(
        max_arena_bytes=64 << 20, max_tensor_bytes=64 << 20, max_nodes=2_000, max_while_iterations=10_000,
        max_seconds=request.seconds,
    )  # fmt: skip
    answer = Answer("ok")
    memory = _MEMORY[0]
    memory.reset()
    runner: Any = None
    started = time.process_time()

    def enter(stage: str) -> None:
        nonlocal started
        now = time.process_time()
        answer.seconds[answer.stage] = now - started
        started, answer.stage = now, stage

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", RuntimeWarning)
        try:
            runner = Interpreter(model_content=request.model, limits=limits, plugins=_MANAGERS[0])
            enter("allocate")
            runner.allocate_tensors()
            enter("feed")
            feed(runner, request.feed)
            enter("invoke")
            runner.invoke()
            answer.grown = memory.grown()
            enter("read")
            for detail in runner.get_output_details():
                runner.get_tensor(detail["index"])
        except OpletError as error:
            _tell(answer, error)
        except MemoryError as error:
            if answer.stage in ("feed", "read"):
                answer.kind, answer.error = "refused", "MemoryError"
            else:
                _tell(answer, error)
        except Exception as error:
            _tell(answer, error)
        stage = answer.stage
        enter("")
        answer.stage = stage
        answer.grown = answer.grown or memory.grown()
        with suppress(Exception):
            if runner is not None:
                runner.close()
    told = [str(item.message) for item in warned if issubclass(item.category, RuntimeWarning)]
    answer.warned = told[0] if told else ""
    return answer


def _tell(answer: Answer, error: BaseException) -> None:
    from oplet.errors import OpletError

    answer.error, answer.message = type(error).__name__, str(error).split("\n")[0][:300]
    if type(error).__module__ != OpletError.__module__:
        answer.kind, answer.place = "escaped", _place(error)
        return
    answer.kind = "refused"
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, MemoryError):
        cause = cause.__cause__ or cause.__context__
    answer.asked = cause is not None
    if cause is not None:
        answer.place = _place(cause)
        return
    cause = error.__cause__
    while isinstance(cause, OpletError):
        cause = cause.__cause__
    if cause is not None and str(error).startswith(f"{type(cause).__name__}: "):
        answer.kind, answer.place = "accident", _place(cause)


def _place(error: BaseException) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "oplet" in Path(frame.filename).parts[-2]]
    return f"{Path(frames[-1].filename).parent.name}/{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"


_MEMORY: list[_Memory] = []
_MANAGERS: list[Any] = []


def main() -> None:
    """argv: the engine, a file for what the process is at when it takes long."""
    engine, traces = sys.argv[1], Path(sys.argv[2])
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a kernel prints must not mix with the answers
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    from oplet import PluginManager

    _MANAGERS.append(PluginManager.named(ENGINES[engine], "plugins"))
    gc.collect()
    gc.freeze()
    _MEMORY.append(_Memory())
    send(answers, "ready")
    with traces.open("w") as file:
        faulthandler.enable(file)
        while True:
            request = receive(requests)
            if request is None:
                return
            file.seek(0)
            file.truncate()
            faulthandler.dump_traceback_later((request.seconds or 10.0) + 1.5, file=file)
            answer = _run(request)
            faulthandler.cancel_dump_traceback_later()
            send(answers, answer)


if __name__ == "__main__":
    main()
