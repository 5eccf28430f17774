"""Processes that tests start: who reads what one said learns before how it ended."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["LONG", "has_written", "processor_seconds", "run_child"]

#: Seconds after which a process is taken to hang. No test is about time: it is far more than any takes on a machine with much else to do.
LONG = 1800.0
_SHOWN = 6000


def run_child(
    command: str | Sequence[Any], *, code: int | None = 0, timeout: float = LONG, **options: Any
) -> subprocess.CompletedProcess[Any]:
    """Run a process to its end; what it said is text, unless `text=False`.

    Args:
        command: the command and its arguments.
        code: the exit code that is expected; None for any, as long as the process ends by itself.
        timeout: seconds until it is stopped.
        options: options of `subprocess.run`.

    Raises:
        AssertionError: it ended otherwise, by a signal, or not in time; with what it said.
    """
    streams = {} if {"stdout", "stderr"} & set(options) else {"capture_output": True}
    command = command if isinstance(command, str) else list(map(str, command))
    try:
        done = subprocess.run(command, **{"text": True, **streams, **options}, timeout=timeout, check=False)
    except subprocess.TimeoutExpired as late:
        raise AssertionError(_told(command, f"did not end in {timeout:g} seconds", late.stdout, late.stderr)) from None
    if done.returncode < 0:
        raise AssertionError(_told(command, f"was ended by {_signal(-done.returncode)}", done.stdout, done.stderr))
    if code is not None and done.returncode != code:
        raise AssertionError(_told(command, f"ended with {done.returncode}, not {code}", done.stdout, done.stderr))
    return done


def processor_seconds(pid: int) -> float:
    """The seconds of processors that a process has taken, by Linux's count; 0 where it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def has_written(pipe: Any, child: int, seconds: float) -> bool:
    """Wait for what a child writes; False where it has taken so many seconds of the processor without, or sleeps for ever."""
    before, since = processor_seconds(child), time.monotonic()
    while not select.select([pipe], [], [], 0.5)[0]:
        if processor_seconds(child) - before > seconds or time.monotonic() - since > 30 * seconds:
            return False
    return True


def _signal(number: int) -> str:
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"


def _told(command: str | list[str], how: str, *streams: str | bytes | None) -> str:
    said = [stream.decode(errors="replace") if isinstance(stream, bytes) else stream or "" for stream in streams]
    start = f"{command if isinstance(command, str) else ' '.join(command)}"
    return "\n".join([f"{start[:400]} {how}", *(f"{name}: {text[-_SHOWN:]}" for name, text in zip(("stdout", "stderr"), said))])
