"""Files of many rows and attached files that are made to harm: refused in oplet's words, within bounded memory and time."""

from __future__ import annotations

import json
import random
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from plugins.tools.tests.running_many.attached import archive, classifier, metadata
from tests.children import run_child
from tests.places import ROOT

from oplet import Interpreter
from oplet.errors import OpletError
from oplet.model.model import Model
from oplet_tools.metadata.attached_files import attached_file
from oplet_tools.metadata.labels import labels_of
from oplet_tools.metadata.tables import tensor_metadata
from oplet_tools.running.values.normalization import normalization_of

FILES = {"labels.txt": b"red\ngreen\nblue\n" * 50}


def mutants(content: bytes, count: int, seed: int) -> list[bytes]:
    """Copies with bytes changed, cut out, doubled, or numbers put in their place that lie about sizes."""
    made, chance = [], random.Random(seed)
    for _ in range(count):
        copy = bytearray(content)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(copy))
            kind = chance.randrange(5)
            if kind == 0:
                copy[at] ^= 1 << chance.randrange(8)
            elif kind == 1:
                copy[at] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))
            elif kind == 2 and at + 4 <= len(copy):
                struct.pack_into("<I", copy, at, chance.choice((0, 1, 0x7FFFFFFF, 0xFFFFFFFF, len(copy), 1 << 20)))
            elif kind == 3:
                del copy[at : at + chance.randrange(1, 20)]
            else:
                copy[at:at] = copy[at : at + chance.randrange(1, 20)]
            if not copy:
                copy = bytearray(b"\0")
        made.append(bytes(copy))
    return made


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.sweep)])
def test_mutants_of_metadata_and_archives_are_read_or_refused(seed: int) -> None:
    said, attached = metadata([1, 2, 3], [4, 5, 6]), archive(FILES, zipfile.ZIP_DEFLATED)
    count = 10_000 if seed else 600
    outcomes = {"read": 0, "refused": 0}
    for content in [
        *(classifier(each, attached) for each in mutants(said, count, seed)),
        *(classifier(said, each) for each in mutants(attached, count, seed)),
    ]:
        model = Model.from_bytes(content)
        for read in (lambda m: labels_of(m, 0, 0), lambda m: normalization_of(tensor_metadata(m, 0, 0))):
            try:
                read(model)
                outcomes["read"] += 1
            except OpletError:
                outcomes["refused"] += 1
    assert min(outcomes.values()) > count / 10, outcomes


def test_an_archive_that_unpacks_to_gigabytes_is_refused_before_it_does() -> None:
    bomb = bytearray(archive({"labels.txt": bytes(64 << 20)}, zipfile.ZIP_DEFLATED))
    with pytest.raises(OpletError, match="more than the 8388608"):
        attached_file(Model.from_bytes(classifier(metadata(), bytes(bomb))), "labels.txt")
    directory = bomb.rindex(b"PK\1\2")
    struct.pack_into("<I", bomb, directory + 24, 100)  # it lies about the size
    try:
        content = attached_file(Model.from_bytes(classifier(metadata(), bytes(bomb))), "labels.txt")
        assert content is not None
        assert len(content) <= 100
    except OpletError:
        pass
    many = archive({f"file {number:05}": b"" for number in range(30_000)})
    with pytest.raises(OpletError, match="table of contents"):
        attached_file(Model.from_bytes(classifier(metadata(), many)), "labels.txt")
    assert attached_file(Model.from_bytes(classifier(metadata(), archive({"a": b"1"}))), "../a") is None


def test_running_a_model_reads_nothing_that_is_attached(monkeypatch: pytest.MonkeyPatch) -> None:
    import oplet_tools.metadata.attached_files as attached_files

    def never(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(attached_files, "attached_file", never)
    interpreter = Interpreter(model_content=classifier(metadata(), archive(FILES)))
    interpreter.allocate_tensors()
    interpreter.invoke()


LIMITED = """
import resource, sys
from oplet_tools.cli.main import main
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
main(sys.argv[1:])
"""


def limited(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command with 3 GiB of addresses."""
    return run_child([sys.executable, "-c", LIMITED, *arguments], code=None, cwd=ROOT)


@pytest.mark.skipif(sys.platform != "linux", reason="needs limits on address space")
def test_lines_and_arrays_that_never_end_take_bounded_memory(digits: Path, tmp_path: Path) -> None:
    row = json.dumps(np.zeros((8, 8, 1)).tolist()).encode()
    lines = tmp_path / "x.jsonl"
    with lines.open("wb") as file:
        file.write(
            b"[" + b"[" * 5_000_000 + b"\n" + row + b"\n" + b'{"image": NaN}\n\xff\n{"image": 1, "image": 2}\n{"name": "x"}\n'
        )
        file.write(b"\0" * (40 << 20))
        file.write(b"\n" + row)
    ran = limited("run", digits, "-i", lines, "-q")
    assert ran.returncode == 3, ran.stderr
    results = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [number for number, line in enumerate(results) if "error" not in line] == [1, 7]
    assert "more than the 33554432 bytes" in results[6]["error"]
    assert "nested too deeply" in results[0]["error"]
    header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (8, 4000000000), }\n"
    for name, content in {
        "huge.npy": b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header,
        "torn.npy": b"\x93NUMPY\x01\0\x10\0{'descr'",
    }.items():
        (tmp_path / name).write_bytes(content)
        ran = limited("run", digits, "-i", tmp_path / name, "--rows")
        assert ran.returncode == 1
        assert ran.stderr.count("\n") == 1, ran.stderr


@pytest.mark.sweep
@pytest.mark.skipif(sys.platform != "linux", reason="needs limits on address space")
def test_mutants_of_tables_are_read_or_refused(digits: Path, tmp_path: Path) -> None:
    """In a process of its own: pyarrow is native code."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pa.table({"image": np.zeros((30, 64), np.float32).tolist(), "name": [f"row {n}" for n in range(30)]})
    parquet.write_table(table, tmp_path / "x.parquet", row_group_size=10)
    with pa.OSFile(str(tmp_path / "x.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    for kind in ("parquet", "arrow"):
        for number, content in enumerate(mutants((tmp_path / f"x.{kind}").read_bytes(), 60, 3)):
            (tmp_path / f"mutant{number:03}.{kind}").write_bytes(content)
    code = """
import sys
from pathlib import Path
from oplet_tools.cli.main import main
counts = {}
for path in sorted(Path(sys.argv[1]).glob("mutant*")):
    try:
        main(["run", sys.argv[2], "-i", str(path), "-q", "-o", str(path) + ".jsonl", "--no-resume"])
    except SystemExit as end:
        counts[end.code] = counts.get(end.code, 0) + 1
sys.stdout.write(repr(counts))
"""
    ran = subprocess.run([sys.executable, "-c", code, tmp_path, digits], capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert "1: " in ran.stdout  # some were refused,
    assert "unexpected" not in ran.stderr  # each with a sentence
