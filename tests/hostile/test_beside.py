"""Files that a model names beside itself: only plain names of regular files in its own folder are read or written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.children import LONG

from oplet import Interpreter, Model, ModelBuilder
from oplet.errors import ModelError
from oplet.schema import tables

posix = pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")

NAMES = [
    "", "/", ".", "./", "../models/payload", "a/../../b", "/tmp/payload", "//server/share", "C:/windows/w", "c:w", "C:\\w", "a\\b",
    "..\\w", "w\0.bin", "\0", "w\n.bin", "w\x1b[2J", "\u202ebin.w", "\udcff", ".bashrc", "sub/.git/hooks", "NUL", "con", "a/aux.bin",
    "COM1", "lpt9.txt", "w.", "w ", "a./w", "folder/", "x" * 256, "/".join(["y" * 200] * 9),
]  # fmt: skip

#: Fine to read, never made: others run what is called so.
CODE = ["importlib.py", "conftest.PY", "evil.pth", "numpy.so", "sub/x.dll"]


def content(group: str, length: int = 4, id: int = 1) -> tables.Model:
    builder = ModelBuilder()
    main = builder.add_subgraph("main")
    x, y = (main.add_tensor(name, "int8", [length], scale=1.0) for name in "xy")
    external = builder.add_external_buffer("weights.bin", bytes(length))
    w = main.add_tensor("w", "int8", [length], external_buffer=external, scale=1.0)
    main.add_operator("RELU", [x], [y])
    main.set_inputs(x)
    main.set_outputs(y, w)
    root = builder.settle()
    root.external_buffer_groups[0].name = group
    return root


def placed(folder: Path, group: str, length: int = 4) -> Path:
    """A model that refers to this file, written by somebody else."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "m.tflite"
    path.write_bytes(Model(content(group, length)).to_bytes())
    return path


def everything(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file()}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_may_lead_elsewhere_is_refused_in_one_printable_sentence(name: str, tmp_path: Path) -> None:
    path = placed(tmp_path / "in", name)
    for attempt in (
        lambda: Interpreter(str(path)),
        lambda: ModelBuilder.from_model(Model.open(path)),
        lambda: Model.open(path).save(tmp_path / "out.tflite"),
        lambda: Model(content(name)).save(tmp_path / "out.tflite"),
        lambda: ModelBuilder().add_external_buffer(name, b"1"),
    ):
        with pytest.raises(ModelError, match="external file") as caught:
            attempt()
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 1000
    assert list(everything(tmp_path)) == ["in/m.tflite"]


@pytest.mark.parametrize(
    "name", ["weights.bin", "./w.bin", "a//b.bin", "a/b/c", "Gewichte größer.bin", "w..bin", "nullable", "model"]
)
def test_a_plain_name_is_read_and_written(name: str, tmp_path: Path) -> None:
    path = placed(tmp_path / "in", name)
    file = path.parent / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"abcd")
    interpreter = Interpreter(str(path))
    interpreter.allocate_tensors()
    assert interpreter.get_tensor(2).tobytes() == b"abcd"
    ModelBuilder.from_model(Model.open(path)).save(tmp_path / "m.tflite")
    assert (tmp_path / name).read_bytes() == b"abcd"


@pytest.mark.parametrize("name", CODE)
def test_no_file_is_made_that_others_would_run(name: str, tmp_path: Path) -> None:
    path = placed(tmp_path / "in", name)
    (path.parent / name).parent.mkdir(exist_ok=True)
    (path.parent / name).write_bytes(b"pass")
    for attempt in (lambda m: m.save(tmp_path / "m.tflite"), lambda m: ModelBuilder.from_model(m).save(tmp_path / "m.tflite")):
        with pytest.raises(ModelError, match="as programs do"):
            attempt(Model.open(path))
    assert len(everything(tmp_path)) == 2


@pytest.mark.parametrize("theirs", [b"mine", b"mine and more", b"abc"])
def test_a_file_that_holds_something_else_is_never_replaced(theirs: bytes, tmp_path: Path) -> None:
    path = placed(tmp_path / "in", "notes.txt")
    (path.parent / "notes.txt").write_bytes(b"abcd")
    out = tmp_path / "out"
    out.mkdir()
    (out / "notes.txt").write_bytes(theirs)
    for attempt in (Model.save, lambda m, to: ModelBuilder.from_model(m).save(to)):
        with pytest.raises(ModelError, match="holds something else"):
            attempt(Model.open(path), out / "m.tflite")
        assert everything(out) == {"notes.txt": theirs}
    (out / "notes.txt").write_bytes(b"abcd")
    before = (out / "notes.txt").stat()
    ModelBuilder.from_model(Model.open(path)).save(out / "m.tflite")
    after = (out / "notes.txt").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_everything_is_looked_at_before_the_first_byte_is_written(tmp_path: Path) -> None:
    builder = ModelBuilder()
    main = builder.add_subgraph()
    main.set_inputs()
    main.set_outputs()
    for name in ("first.bin", "sub/second.bin", "last.bin"):
        builder.add_external_buffer(name, b"1234")
    (tmp_path / "last.bin").write_bytes(b"user")
    with pytest.raises(ModelError, match="last.bin"):
        builder.save(tmp_path / "m.tflite")
    assert everything(tmp_path) == {"last.bin": b"user"}
    assert os.listdir(tmp_path) == ["last.bin"]
    (tmp_path / "last.bin").unlink()
    (tmp_path / "sub").write_bytes(b"a file")
    with pytest.raises(ModelError, match="is a file"):
        builder.save(tmp_path / "m.tflite")
    assert os.listdir(tmp_path) == ["sub"]


def test_an_external_file_is_not_the_model_itself_nor_two_files_one(tmp_path: Path) -> None:
    for names in (["m.tflite"], ["./m.tflite"], ["w", "./w"], ["w", "W"]):
        builder = ModelBuilder()
        main = builder.add_subgraph()
        main.set_inputs()
        main.set_outputs()
        for at, name in enumerate(names):
            builder.add_external_buffer(name, bytes([at]))
        with pytest.raises(ModelError, match="name of another"):
            builder.save(tmp_path / "m.tflite")
        assert os.listdir(tmp_path) == []


@posix
@pytest.mark.parametrize("name", ["link.bin", "folder/secret.bin"])
def test_links_that_lead_out_of_the_folder_are_not_followed(name: str, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.bin").write_bytes(b"abcd")
    path = placed(tmp_path / "in", name)
    for folder in (path.parent, tmp_path / "out"):
        folder.mkdir(exist_ok=True)
        (folder / "link.bin").symlink_to(outside / "secret.bin")
        (folder / "folder").symlink_to(outside)
    with pytest.raises(ModelError, match="symbolic link leads"):
        Interpreter(str(path))
    builder = ModelBuilder()
    main = builder.add_subgraph()
    main.set_inputs()
    main.set_outputs()
    builder.add_external_buffer(name, b"abcd")
    with pytest.raises(ModelError, match="symbolic link leads"):
        builder.save(tmp_path / "out" / "m.tflite")
    assert everything(outside) == {"secret.bin": b"abcd"}


@posix
def test_links_inside_the_folder_are_followed(tmp_path: Path) -> None:
    path = placed(tmp_path, "link.bin")
    (tmp_path / "real.bin").write_bytes(b"abcd")
    (tmp_path / "link.bin").symlink_to("real.bin")
    assert Model.open(path).external_buffer(1).tobytes() == b"abcd"


@posix
def test_a_model_in_the_root_folder_names_no_files() -> None:
    from oplet.model.files.external_paths import locate

    with pytest.raises(ModelError, match="lies in the root folder '/'"):
        locate("/", "etc/passwd", "'/m.tflite'")


_OPEN = """
import os, socket, sys
from oplet import Interpreter, Model
from oplet.errors import ModelError
kind, model = sys.argv[1:]
os.chdir(os.path.dirname(model))
if kind == "pipe":
    os.mkfifo("w.bin")
elif kind == "socket":
    socket.socket(socket.AF_UNIX).bind("w.bin")
elif kind == "directory":
    os.mkdir("w.bin")
for path in (model, os.path.abspath("w.bin")):
    for use_mmap in (True, False):
        try:
            Interpreter(path, use_mmap=use_mmap)
        except ModelError as error:
            assert "it is a " + kind in str(error), error
        else:
            sys.exit("opened")
print("refused")
"""


@posix
@pytest.mark.parametrize("kind", ["pipe", "socket", "directory"])
def test_what_is_no_regular_file_is_refused_at_once(kind: str, tmp_path: Path) -> None:
    path = placed(tmp_path, "w.bin")
    done = subprocess.run(
        [sys.executable, "-c", _OPEN, kind, str(path)], capture_output=True, text=True, timeout=LONG, check=False
    )
    assert (done.returncode, done.stdout) == (0, "refused\n"), done.stderr


@posix
def test_a_device_is_no_model() -> None:
    with pytest.raises(ModelError, match="it is a device"):
        Model.open("/dev/zero")


def test_of_two_buffers_with_one_number_each_keeps_its_bytes_and_bad_groups_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    root = content("w.bin")
    root.external_buffers.append(tables.ExternalBuffer(id=1, group=0, offset=4, length=2))
    path.write_bytes(Model(root).to_bytes())
    (tmp_path / "w.bin").write_bytes(b"abcdef")
    assert ModelBuilder.from_model(Model.open(path)).external_files() == {"w.bin": b"abcdef"}
    root.external_buffers[-1].group = 9
    path.write_bytes(Model(root).to_bytes())
    with pytest.raises(ModelError, match="group 9"):
        ModelBuilder.from_model(Model.open(path))


@pytest.mark.parametrize("name", ["m\0.tflite", "\udcff\0"])
@pytest.mark.parametrize("call", [Interpreter, Model.open, lambda name: Model(content("w.bin")).save(name)])
def test_a_path_that_no_file_can_have_is_a_model_error(name: str, call: object) -> None:
    with pytest.raises(ModelError):
        call(name)  # type: ignore[operator]


def test_values_read_from_files_beside_are_the_same_with_and_without_mapping(tmp_path: Path) -> None:
    path = placed(tmp_path, "w.bin", 64)
    (tmp_path / "w.bin").write_bytes(bytes(range(64)))
    for use_mmap in (True, False):
        interpreter = Interpreter(str(path), use_mmap=use_mmap)
        interpreter.allocate_tensors()
        np.testing.assert_array_equal(interpreter.get_tensor(2), np.arange(64, dtype=np.int8))
