"""Processes that tests start: who reads what one said learns before how it ended."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence
from typing import Any

__all__ = ["LONG", "run_child"]

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


def _signal(number: int) -> str:
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"


def _told(command: str | list[str], how: str, *streams: str | bytes | None) -> str:
    said = [stream.decode(errors="replace") if isinstance(stream, bytes) else stream or "" for stream in streams]
    start = f"{command if isinstance(command, str) else ' '.join(command)}"
    return "\n".join([f"{start[:400]} {how}", *(f"{name}: {text[-_SHOWN:]}" for name, text in zip(("stdout", "stderr"), said))])
