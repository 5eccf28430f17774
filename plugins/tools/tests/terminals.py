"""Commands on a terminal; who asks for this where there is none, as on Windows, is skipped."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

__all__ = ["on_a_terminal"]

pty = pytest.importorskip("pty")


def on_a_terminal(arguments: list[str], out: Path) -> list[str]:
    """The lines that Python writes on a terminal as standard error, without colours; every redrawing of a bar is a line."""
    ours, its = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with (
        out.open("wb") as file,
        subprocess.Popen([sys.executable, *arguments], stdout=file, stderr=its, env=environment) as process,
    ):
        os.close(its)
        told = b""
        while True:
            try:
                chunk = os.read(ours, 1 << 16)
            except OSError:  # the other end is closed
                break
            if not chunk:
                break
            told += chunk
    os.close(ours)
    text = told.decode()
    assert process.returncode == 0, text
    # A cursor that moves leaves its line.
    text = re.sub(r"\x1b\[\d*[A-K]", "\n", text)
    return [line.rstrip() for line in re.split(r"[\r\n]+", re.sub(r"\x1b\[[^A-Za-z]*[A-Za-z]", "", text)) if line.strip()]
