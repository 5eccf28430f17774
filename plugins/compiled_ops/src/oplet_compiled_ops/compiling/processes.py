"""The pool of child processes that compile kernels, each driven by a thread."""

from __future__ import annotations

import atexit
import base64
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import deque
from contextlib import suppress
from pathlib import Path

from oplet import checkpoint, python_process
from oplet_compiled_ops.compiling.kernels import CompileError, Kernel
from oplet_compiled_ops.compiling.worker import main

__all__ = ["Compilers", "compilers"]

#: The most processes that compile; each takes some 200 MB.
_MOST = 4
#: Seconds that a process stays without work, and those that a kernel may take.
_IDLE, _LONGEST = 2.0, 300.0
#: Seconds that the end of this process waits at most for one that is being started.
_START_SECONDS = 30.0
_START = f"from {main.__module__} import main; main()"
#: What the process that compiles imports.
_MODULES = ("oplet", "oplet_builtin_ops", __name__.partition(".")[0], "numpy", "numba", "llvmlite")


class Compilers:
    """The pool of compile processes, each driven by a thread of this process, and the queue of kernels to compile."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[Kernel] = deque()
        self._wanted: set[Kernel] = set()
        self._leaders = 0
        self._leaving = False
        self._children: list[_Child] = []
        self._folders = _folders()

    def want(self, kernel: Kernel) -> bool:
        """Queue a kernel for compilation; return False if no compile process can be started here."""
        if self._folders is None:
            return False
        with self._changed:
            if kernel in self._wanted:
                return True
            if self._leaders < max(1, min(_MOST, _cores() - 1)):
                try:
                    threading.Thread(target=self._lead, name="oplet-compiler", daemon=True).start()
                except RuntimeError:  # no more threads can be started
                    if not self._leaders:
                        return False
                else:
                    self._leaders += 1
            self._wanted.add(kernel)
            self._waiting.append(kernel)
            self._changed.notify()
        return True

    def wait(self, kernel: Kernel) -> None:
        with self._changed:
            while kernel in self._wanted:
                self._changed.wait(0.1)
                checkpoint()

    def _lead(self) -> None:
        """Run the loop of one thread: start a compile process and feed it kernels, until the queue has been empty for two
        seconds.

        If the process dies, another one is started for the kernels that are left.
        """
        while self._has_work():
            # No `TemporaryDirectory`: the end of this process would remove it before the process that compiles is started in it.
            empty = ""
            try:
                empty = tempfile.mkdtemp(prefix="oplet-child-")
                with python_process(
                    ["-c", _START],
                    folders=self._folders or (),
                    empty=empty,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                ) as process:
                    child = _Child(process)
                    self._begin(child)
                    while self._has_work() and self._next(child):
                        pass
                    with self._changed:
                        self._children.remove(child)
                    child.end()
            except OSError as error:
                self._refuse(f"its compiler cannot be started: {error}")
            finally:
                with suppress(OSError):  # as a rule that process has removed it, as it does where this one ends first
                    os.rmdir(empty)
        with self._changed:
            self._leaders -= 1
            self._changed.notify_all()

    def _begin(self, child: _Child) -> None:
        with self._changed:
            self._children.append(child)
            self._changed.notify_all()

    def _has_work(self) -> bool:
        with self._changed:
            return bool(self._waiting) or self._changed.wait_for(lambda: bool(self._waiting), _IDLE)

    def _next(self, child: _Child) -> bool:
        """Have the process compile the next queued kernel, and load the result; return False if the process died."""
        with self._changed:
            if not self._waiting:  # another leader has it
                return True
            kernel = self._waiting.popleft()
            child.ask(kernel)  # before the lock is free: what waits no longer was asked for, should this process end now
        try:
            kernel.adopt(child.answer())
        except Exception as error:  # whatever it is, nobody may wait for this kernel for ever
            self._fail(kernel, str(error))
        self._done(kernel)
        return child.runs

    def _done(self, kernel: Kernel) -> None:
        with self._changed:
            self._wanted.discard(kernel)
            self._changed.notify_all()

    def _refuse(self, reason: str) -> None:
        while self._waiting:
            kernel = self._waiting.popleft()
            self._fail(kernel, reason)
            self._done(kernel)

    def _fail(self, kernel: Kernel, reason: str) -> None:
        if not self._leaving:  # nobody waits for a kernel any more, and what cannot be had at a process's end is no fault of it
            kernel.fail(reason)

    def leave(self) -> None:
        """At the exit of this process: hand the queue to a compile process that runs, which compiles it into the disk cache and
        then ends.
        """
        with self._changed:
            self._leaving = True
            self._changed.wait_for(lambda: self._children or not self._waiting or not self._leaders, _START_SECONDS)
            while self._children and self._waiting:
                self._children[0].ask(self._waiting.popleft())


class _Child:
    """A compile process, to which this process sends one kernel after the other."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    def answer(self) -> bytes:
        """Wait for the machine code of the kernel that was asked for; return the bytes that `Kernel.adopt` loads.

        Raises:
            CompileError: the kernel cannot be compiled, or the process ended, or was ended as it took five minutes.
        """
        timer = threading.Timer(_LONGEST, self._process.kill)
        timer.daemon = True
        timer.start()
        try:
            answer = self._process.stdout.readline() if self._process.stdout else b""
        finally:
            timer.cancel()
        try:
            found = json.loads(answer)
        except ValueError:
            self._process.kill()
            raise CompileError(f"its compiler ended with exit code {self._process.wait()}") from None
        if "error" in found:
            raise CompileError(found["error"])
        return base64.b64decode(found["code"])

    def ask(self, kernel: Kernel) -> None:
        """Send the process a request to compile a kernel, without waiting for the answer."""
        request = {"name": kernel.name, "module": kernel.function.__module__, "family": kernel.family}
        with suppress(OSError, ValueError):  # it has ended
            if self._process.stdin is not None:
                self._process.stdin.write(json.dumps(request).encode() + b"\n")
                self._process.stdin.flush()

    def end(self) -> None:
        """Close the process's input, at which it ends, and wait for that, two seconds at most."""
        with suppress(OSError, ValueError, subprocess.TimeoutExpired):
            if self._process.stdin is not None:
                self._process.stdin.close()
            self._process.wait(_IDLE)


def _folders() -> list[str] | None:
    """Return the folders that a compile process needs in its sys.path; None if `sys.executable` may be no Python interpreter."""
    if getattr(sys, "frozen", False) or not os.path.basename(sys.executable or "").lower().startswith(("python", "pypy")):
        return None
    found: list[str] = []
    for name in _MODULES:
        spec = importlib.util.find_spec(name)
        if spec is None or not spec.origin:  # a build of just some kernels holds all that it needs
            continue
        folder = str(Path(spec.origin).absolute().parents[1])
        if folder not in found:
            found.append(folder)
    return found


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_lock = threading.Lock()
_of_this_process: list[Compilers] = []


def compilers() -> Compilers:
    with _lock:
        if not _of_this_process:
            _of_this_process.append(Compilers())
            atexit.register(_leave)
        return _of_this_process[0]


def _leave() -> None:
    for compilers in _of_this_process:
        compilers.leave()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_of_this_process.clear)  # the threads that lead are the parent's
