"""docs/tutorial.md, done as it is written, in virtual environments of its own."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import re
import tarfile
import time
import zipfile
from pathlib import Path

import pytest
from plugins.tools.tests.scaffolding.followed_pages import follow, with_wheels
from tests.places import ROOT

pytestmark = pytest.mark.environment

PAGE = ROOT / "docs" / "tutorial.md"
#: The promise of the page; pip's downloads are in it.


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
    output = follow(PAGE, tmp_path, with_wheels(PAGE))
    seconds = time.monotonic() - start
    print(f"the tutorial took {seconds:.0f} s")  # five minutes on a machine that has nothing else to do

    # The tests of the package as generated, as the author changed it, and those of the delegate.
    passed = [int(count) for count in re.findall(r"(\d+) passed", output)]
    assert len(passed) == 3
    assert min(passed) > 10
    assert not re.search(r"\d+ (failed|errors?|skipped)", output)

    # Somebody else's environment, before and after the wheel is installed.
    assert "Encountered unresolved custom op: Sinh" in output
    assert "1 by acme-sinh 0.1.0" in output
    assert json.loads((tmp_path / "y.json").read_text()) == {"output_0": pytest.approx([-2.1292794, 0, 3.6268604], rel=1e-6)}

    [source, wheel] = sorted((tmp_path / "acme-sinh" / "dist").iterdir(), key=lambda file: file.suffix)
    assert source.name == "acme_sinh-0.1.0.tar.gz"
    with tarfile.open(source) as archive:
        kept = {name.removeprefix("acme_sinh-0.1.0/") for name in archive.getnames()}
    assert kept >= {"LICENSE", "README.md", "CONTRIBUTING.md", "pyproject.toml", "src/acme_sinh/kernel.py", "tests/test_sinh.py"}
    assert output.count("PASSED") == 2  # twine's verdict on each file
    assert any(name.endswith("/licenses/LICENSE") for name in zipfile.ZipFile(wheel).namelist())
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert names == {f"acme_sinh/{name}" for name in ("__init__.py", "kernel.py", "py.typed")}

    assert "nodes: 1 by the delegate fast" in output
    for name in ("author", "user"):
        assert changed_files(tmp_path / name) == []
