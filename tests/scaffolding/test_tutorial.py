"""docs/tutorial.md, done as it is written, in virtual environments of its own."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import os
import re
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.places import ROOT

pytestmark = pytest.mark.slow

PAGE = ROOT / "docs" / "tutorial.md"
#: The promise of the page; pip's downloads are in it.
FIVE_MINUTES = 300

#: Debian keeps what `venv` needs to install pip in a package of its own; without it, this environment's pip serves.
PRELUDE = f"""
set -eu
python3() {{
    "{sys.executable}" "$@" && return
    "{sys.executable}" -m venv --clear --without-pip "$3"
    "{sys.executable}" -m pip --python "$3/bin/python" install --quiet pip
}}
"""


def steps() -> Iterator[tuple[str, str]]:
    """The page's blocks, in order: ("sh", commands), or (a file's name, what to write into it)."""
    for language, text in re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE):
        if language == "sh":
            yield "sh", text
        else:
            first, _, rest = text.partition("\n")
            yield first.removeprefix("# "), rest


def as_script() -> str:
    """The page as one shell script, which stops at the first thing that fails."""
    parts = [PRELUDE]
    for kind, text in steps():
        parts.append(text if kind == "sh" else f"cat > {kind} <<'END_OF_FILE'\n{text}END_OF_FILE\n")
    return "\n".join(parts)


def walk(folder: Path) -> str:
    """Follow the page in a folder; what the commands said."""
    hidden = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME")
    environment = {key: value for key, value in os.environ.items() if key not in hidden and not key.startswith("OPLET_")}
    environment |= {"REPO": str(ROOT), "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_QUIET": "1"}
    done = subprocess.run(["bash", "-c", as_script()], cwd=folder, env=environment, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout + done.stderr


def changed_files(environment: Path) -> list[str]:
    """Files of oplet that are not what pip installed."""
    [record] = environment.glob("lib/python*/site-packages/oplet-*.dist-info/RECORD")
    site = record.parents[1]
    changed = []
    for name, digest, _ in csv.reader(record.read_text().splitlines()):
        if digest:
            found = base64.urlsafe_b64encode(hashlib.sha256((site / name).read_bytes()).digest()).decode().rstrip("=")
            if digest != f"sha256={found}":
                changed.append(name)
    return changed


def test_from_an_idea_to_a_published_operator_in_five_minutes(tmp_path: Path) -> None:
    start = time.monotonic()
    output = walk(tmp_path)
    seconds = time.monotonic() - start
    print(f"the tutorial took {seconds:.0f} s")
    assert seconds < FIVE_MINUTES

    # The tests of the package as generated, as the author changed it, and those of the delegate.
    passed = [int(count) for count in re.findall(r"(\d+) passed", output)]
    assert len(passed) == 3
    assert min(passed) > 10
    assert not re.search(r"\d+ (failed|errors?|skipped)", output)

    # Somebody else's environment, before and after the wheel is installed.
    assert "Encountered unresolved custom op: Sinh" in output
    assert "1 by oplet-sinh-op 0.1.0" in output
    assert json.loads((tmp_path / "y.json").read_text()) == {"output_0": pytest.approx([-2.1292794, 0, 3.6268604], rel=1e-6)}

    [wheel] = (tmp_path / "oplet-sinh-op" / "dist").glob("*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert names == {f"oplet_sinh_op/{name}" for name in ("__init__.py", "kernel.py", "py.typed")}

    assert "nodes: 1 by the delegate fast" in output
    for name in ("author", "user"):
        assert changed_files(tmp_path / name) == []
