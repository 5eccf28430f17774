"""Files that are no models, or damaged ones: refused before anything of them is believed."""

from __future__ import annotations

import io
import os
import struct
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.children import run_child
from tests.places import CONFORMANCE

from oplet import Interpreter, Model
from oplet.errors import ModelError
from oplet.schema import tables
from oplet_testing.one_op import Spec, one_op_model

from .harness import base, edited, main, refusal, rows, run, sharing_tensors


def load(data: bytes) -> Callable[[], Interpreter]:
    return lambda: Interpreter(model_content=data)


@rows(1)
def test_an_empty_file_is_called_empty(tmp_path: Path) -> None:
    path = tmp_path / "empty.tflite"
    path.touch()
    refusal(lambda: Interpreter(str(path)), "empty.tflite.*empty")
    refusal(load(b""), "must be specified")


@rows(2)
@pytest.mark.parametrize("size", [1, 4, 7])
def test_a_few_bytes_are_too_short(size: int) -> None:
    refusal(load(base()[:size]), f"at least 7 bytes .*; there are {size} in")


@rows(3)
def test_another_identifier_is_named() -> None:
    refusal(load(base().replace(b"TFL3", b"TFL2", 1)), "identifier 'TFL2', should be 'TFL3'")


@rows(4)
def test_a_file_cut_in_half_is_refused_with_the_offset() -> None:
    data = base()
    refusal(load(data[: len(data) // 2]), r"leads outside the file, to \d+, at byte \d+|does not fit .* at byte")


@rows(4, "class 17")
def test_a_file_cut_anywhere_is_refused() -> None:
    data = base()
    for size in range(8, len(data)):
        try:
            run(data[:size])
        except ModelError as error:
            assert "byte" in str(error) or "out of range" in str(error) or "truncated" in str(error)  # noqa: PT017
        else:
            assert data[size:].count(0) == len(data) - size  # nothing but padding is missing


@rows(5)
@pytest.mark.parametrize("offset", [0x7FFFFFFF, 0xFFFFFFFF, 0xFFFFFFFC])
def test_a_root_offset_outside_the_file_is_refused(offset: int) -> None:
    refusal(load(struct.pack("<I", offset) + base()[4:]), f"root offset leads outside the file, to {offset}")


def zipped(name: str) -> bytes:
    """A zip archive whose first file has this name."""
    with zipfile.ZipFile(file := io.BytesIO(), "w") as archive:
        archive.writestr(name, bytes(40))
    return file.getvalue()


LOOKALIKES = {
    "pb": (b"\x08\x01\x12\x04abcdefgh", "SavedModel protobuf"),
    "zip": (b"PK\x03\x04aaaabbbb", "zip archive"),
    "html": (b"<!DOCTYPE html><html></html>", "HTML page"),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\noid", "Git LFS pointer"),
    "h5": (b"\x89HDF\r\n\x1a\n12345678", "HDF5"),
    "gzip": (b"\x1f\x8b\x08\x00aaaabbbb", "gzip"),
    "onnx": (b"\x08\x07\x12\x07pytorch\x1a", "ONNX"),
    "litertlm": (b"LITERTLM\x01\0\0\0\x05\0\0\0", "LiteRT-LM file"),
    "task": (zipped("face_detector.tflite"), r"MediaPipe's .task, whose first file is 'face_detector.tflite'"),
    "task of a language model": (zipped("TF_LITE_PREFILL_DECODE"), "MediaPipe's .task"),
    "keras": (zipped("config.json"), "a zip archive; a Keras"),
    "zip of an endless name": (b"PK\x03\x04" + b"\xff" * 40 + b"x" * 70_000, "a zip archive"),
    "html after blank lines": (b"\r\n\n   <!DOCTYPE HTML><html></html>", "HTML page"),
    "html after a mark": (b"\xef\xbb\xbf<HTML><head></head>", "HTML page"),
    "html far behind": (b"\n" * 1000 + b"<html>", "HTML page"),
    "lfs after a mark": (b"\xef\xbb\xbfversion https://git-lfs.github.com/spec/v1\r\noid", "Git LFS pointer"),
    "lfs after a blank line": (b"\nversion https://git-lfs.github.com/spec/v1\noid", "Git LFS pointer"),
    "annex": (b"/annex/objects/SHA256E-s5--abc.tflite\n", "git-annex pointer"),
    "gguf": (b"GGUF\x03\0\0\0\0\0\0\0", "GGUF"),
    "blanks": (b" " * 9000, "another kind of file"),
    "text": (b"hello, this is not a model", "another kind of file"),
}


@rows(6)
@pytest.mark.parametrize("kind", LOOKALIKES)
def test_a_file_of_another_kind_is_called_what_it_is(kind: str) -> None:
    data, words = LOOKALIKES[kind]
    refusal(load(data), words)


@rows(27)
def test_a_buffer_behind_the_file_is_refused(tmp_path: Path) -> None:
    model = Model.from_bytes(one_op_model("ADD", [Spec("float32", [999]), np.ones(999, np.float32)], [Spec("float32", [999])]))
    data = model.to_bytes("outside")
    refusal(load(data[:-2000]), r"buffer \d specified an out of range offset.* 3996 bytes at \d+")


@rows("class 17")
def test_values_that_are_not_aligned_are_refused() -> None:
    data = bytearray(base())
    at = struct.unpack_from("<I", data)[0]
    struct.pack_into("<I", data, 0, at + 2)
    refusal(load(bytes(data)), "not aligned|no vtable|does not fit")


@rows(60)
def test_a_long_name_that_sixty_thousand_tensors_share_is_kept_once() -> None:
    data = sharing_tensors(60_000, 3, struct.pack("<I", 1_000_000) + b"n" * 1_000_000 + b"\x00")
    tensors = main(Model.from_bytes(data).root).tensors
    assert len(tensors) == 60_000
    assert len({id(tensor.name) for tensor in tensors}) == 1
    assert tensors[0].name == "n" * 1_000_000


@rows(60)
@pytest.mark.parametrize(
    "name", ["nul\x00inside", "half \udcff a character", "two\nlines", "n" * 1_000_000], ids=["nul", "utf-8", "line", "1 MB"]
)
def test_strange_names_run_and_fit_into_messages(name: str) -> None:
    def change(root: tables.Model) -> None:
        main(root).name = name
        for tensor in main(root).tensors:
            tensor.name = name

    def broken(root: tables.Model) -> None:
        change(root)
        main(root).outputs = np.array([77], np.int32)

    def unfit(root: tables.Model) -> None:
        change(root)
        main(root).tensors[0].shape = np.array([3], np.int32)

    [answer] = run(edited(base(), change))
    assert answer.tolist() == [1, 1]
    refusal(load(edited(base(), broken)), r"Subgraph 0 .* output 0 at tensor 77")
    refusal(lambda: run(edited(base(), unfit)), r"\[3\].*\[2\]")


@rows(55)
def test_a_file_that_is_deleted_or_replaced_while_open_goes_on(tmp_path: Path) -> None:
    path, other = tmp_path / "m.tflite", tmp_path / "other.tflite"
    path.write_bytes(base())
    interpreter = Interpreter(str(path))
    other.write_bytes(b"another file")
    os.replace(other, path)
    interpreter.allocate_tensors()
    interpreter.invoke()
    path.unlink()
    interpreter.invoke()
    assert interpreter.get_tensor(2).tolist() == [1, 1]


@rows(55)
@pytest.mark.skipif(sys.platform == "win32", reason="Windows lets nobody cut a file that is mapped")
def test_a_file_that_is_cut_while_open_is_refused_and_does_not_end_the_process(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(base())
    for allocated in (False, True):
        path.write_bytes(base())
        interpreter = Interpreter(str(path))
        if allocated:
            interpreter.allocate_tensors()
        os.truncate(path, 16)
        call = interpreter.invoke if allocated else interpreter.allocate_tensors
        refusal(call, r"m.tflite' changed while it was in use: it had \d+ bytes and has 16. Open it again")


RECORDED = sorted((CONFORMANCE / "bad").glob("*.tflite"))


@rows(*range(1, 5), 7, 11, 28, 33, 35, 39, 51, 52)
@pytest.mark.skipif(not RECORDED, reason="the recorded files lie outside the project and are not here")
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_recorded_hostile_file_is_refused(path: Path) -> None:
    refusal(lambda: run(None, model_path=str(path)), "")


@pytest.mark.sweep
@pytest.mark.skipif(not RECORDED, reason="the recorded files lie outside the project and are not here")
def test_every_recorded_hostile_file_is_refused_in_a_process_of_its_own() -> None:
    command = [sys.executable, str(CONFORMANCE / "run_bad.py"), str(CONFORMANCE / "bad"), "--timeout", "20"]
    done = run_child(command, code=None)
    [*others, verdict] = done.stdout.strip().splitlines()
    assert others in ([], [""])
    count = len(RECORDED)
    assert verdict == f"{count} refused, 0 other, 0 ran, 0 crash, 0 hang, 0 memory of {count}"
