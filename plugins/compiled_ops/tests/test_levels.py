"""The libraries of all levels, built here: each holds no instruction that its name does not promise, and answers as numpy's kernels."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.places import ROOT

from oplet_compiled_ops.library.levels import LEVELS

pytestmark = [
    pytest.mark.environment,
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("numba", "ziglang")), reason="pip install numba ziglang"
    ),
    pytest.mark.skipif(shutil.which("objdump") is None, reason="binutils is not installed"),
]

#: What a level before the one that brings it may not have: registers and instructions, as objdump writes them. Not tzcnt, which older
#: processors run as bsf, of the same result where a bit is set.
BRINGS = {
    "x86-64-v3": r"%ymm|\bv[a-z0-9]+\s|\b(?:andn|bextr|bls[a-z]+|bzhi|mulx|pdep|pext|rorx|sarx|shlx|shrx|lzcnt|movbe)\b",
    "x86-64-v4": r"%zmm|%k[0-7]\b|%[xy]mm(?:1[6-9]|2\d|3[01])\b",
    "x86-64-v4-vnni": r"\bvpdp(?:busd|wssd)s?\b",
}


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("libraries")
    objects = ROOT / "plugins" / "compiled_ops" / "build" / "objects"
    command = [sys.executable, "-m", "oplet_compiled_ops.compiling", "--platform", "linux-x86_64", "--all-levels"]
    subprocess.run([*command, "--objects", str(objects), "--output", str(folder)], check=True)
    return folder


@pytest.mark.parametrize("level", [level.name for level in LEVELS.values() if level.machine == "x86_64"])
def test_no_instruction_is_beyond_the_level(level: str, libraries: Path) -> None:
    names = [name for name in LEVELS if LEVELS[name].machine == "x86_64"]
    text = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", str(libraries / f"{level}.so")], capture_output=True, text=True, check=True
    ).stdout
    instructions = re.findall(r"^\s+[0-9a-f]+:\s+(.+)$", text, re.MULTILINE)
    assert len(instructions) > 100_000
    for later in names[names.index(level) + 1 :]:
        beyond = [line for line in instructions if re.search(BRINGS[later], line)]
        assert not beyond, f"{level}: {beyond[:5]}"
    if level in BRINGS:
        assert any(re.search(BRINGS[level], line) for line in instructions), "the level is not used"
