"""The shell completes oplet's commands and options, as docs/command.md says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest
from tests.children import run_child


@pytest.fixture
def command() -> str:
    found = shutil.which("oplet", path=os.path.dirname(sys.executable))
    if found is None:
        pytest.skip("the command is not installed beside this Python")
    return found


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("oplet ins", {"inspect"}),
        ("oplet new-", {"new-op", "new-delegate"}),
        ("oplet inspect --te", {"--tensor", "--tensors"}),
        ("oplet bu", {"build"}),
        ("oplet build --with-", {"--with-core", "--with-model"}),
    ],
)
def test_a_shell_completes_commands_and_options(command: str, typed: str, wanted: set[str]) -> None:
    words = {"_OPLET_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    done = run_child([command], env={**os.environ, **words})
    assert set(done.stdout.split()) == wanted, done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_what_would_be_written_is_shown(command: str, shell: str) -> None:
    chosen = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run(
        [command, "--show-completion", shell], env={**os.environ, **chosen}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "_OPLET_COMPLETE" in done.stdout
