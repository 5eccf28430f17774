"""Input files of the command that are made to harm: each is refused in oplet's words, within bounded memory."""

from __future__ import annotations

import io
import json
import os
import struct
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from oplet.errors import OpletError, TensorError
from oplet_build.selection.lock import Lock
from oplet_tools.running.inputs import load_input, load_inputs
from oplet_tools.running.outputs import read_labels

CHILD = Path(__file__).with_name("input_files_child.py")
DETAILS = {
    "name": "x",
    "index": 0,
    "dtype": np.float32,
    "quantization": (0.0, 0),
    "shape": np.array([1, 8, 8, 3], np.int32),
    "shape_signature": np.array([1, 8, 8, 3], np.int32),
}


def _npy(header: str | bytes, data: bytes = b"", version: int = 1) -> bytes:
    text = header.encode() if isinstance(header, str) else header
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(text)) + text + data


def _header(descr: str = "'<f4'", shape: str = "(3,)", order: str = "False") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n"


def _zip(*members: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return buffer.getvalue()


def _png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(bytes(1 << 20))) + chunk(b"IEND", b"")


def _zeros(count: int, dtype: str) -> bytes:
    return _npy(_header(f"'{dtype}'", f"({count},)"), bytes(count * np.dtype(dtype).itemsize))


def _family() -> dict[str, bytes]:
    headers = {
        "huge": _header(shape="(2000000000, 2000000000)"),
        "product": _header(shape="(0, 99999999999)"),
        "digits": _header(shape=f"({'9' * 3000},)"),
        "ranks": _header(shape=f"({'1,' * 900})"),
        "negative": _header(shape="(-1,)"),
        "objects": _header("'|O'"),
        "record": _header("[('a', '<f4')]"),
        "void": _header("'|V1000000000'"),
        "wide": _header("'<U999999999'", "(1,)"),
        "date": _header("'<M8[s]'"),
        "nan": _header(shape="(nan,)"),
        "code": "__import__('os').abort()",
        "deep": "(" * 3000,
        "minus": "-" * 3000 + "1",
        "empty": "",
        "nothing": "{}",
    }
    files = {f"h_{name}_{version}.npy": _npy(text, bytes(12), version) for name, text in headers.items() for version in (1, 2, 3)}
    files["h_long.npy"] = _npy("x" * 70_000, version=2)
    files["h_lying_length.npy"] = b"\x93NUMPY\x03\x00\xff\xff\xff\xff{"
    files |= {f"z_{name}.npz": _zip(("x.npy", _npy(text, bytes(12)))) for name, text in headers.items()}
    bomb = _zeros(300 << 20, "|i1")
    files["z_bomb.npz"] = _zip(("x.npy", bomb))
    files["z_text_bomb.npz"] = _zip(("x.npy", _zeros(20 << 20, "|S1")))
    good = _npy(_header(shape="(7, 11)"), bytes(77 * 4))
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        files[f"z_method_{method}.npz"] = _zip(("x.npy", good), method=method)
    packed = _zip(("x.npy", good))
    encrypted, odd = bytearray(packed), bytearray(packed)
    directory = packed.index(b"PK\x01\x02")
    encrypted[6] |= 1
    encrypted[directory + 8] |= 1
    odd[8], odd[directory + 10] = 97, 97
    files |= {"z_encrypted.npz": bytes(encrypted), "z_unknown_method.npz": bytes(odd), "z_none.npz": _zip()}
    files["z_nested.npz"] = _zip(("x.npy", packed))
    files["z_twice.npz"] = _zip(("x.npy", good), ("x", good))
    files["z_many.npz"] = _zip(*((f"{i}.npy", b"") for i in range(25_000)))
    files["j_deep.json"] = b"[" * 5_000_000
    files["j_nested.json"] = b"[" * 40 + b"1" + b"]" * 40
    files["j_ragged.json"] = b"[[1], [2, 3]]"
    files["j_digits.json"] = b"[" + b"9" * 400 + b"]"
    files["j_surrogate.json"] = b'["\\ud800"]'
    files["j_uneven_text.json"] = json.dumps(["a" * 1_000_000, *"b" * 5000, None]).encode()
    files["j_none.json"] = b"{}"
    files["j_bytes.json"] = b"\xff\xfe"
    files["j_large.json"] = b"[" + b"0," * (20 << 20) + b"0]"
    files["p_bomb.png"], files["p_large.png"] = _png(60_000, 60_000), _png(13_000, 13_000)
    files["p_eps.png"] = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\nshowpage\n"
    buffer = io.BytesIO()
    for kind in ("GIF", "BMP", "TIFF", "PPM", "WEBP"):
        buffer = io.BytesIO()
        Image.new("RGB", (8, 8)).save(buffer, kind)
        files[f"p_{kind}.jpg"] = buffer.getvalue()
    whole = {"npy": good, "npz": packed}
    for kind, content in whole.items():
        for end in range(0, len(content), 13):
            files[f"t_{end}.{kind}"] = content[:end]
            files[f"f_{end}.{kind}"] = content[:end] + bytes([content[end] ^ 0xFF]) + content[end + 1 :]
    for kind in ("png", "jpg"):
        buffer = io.BytesIO()
        Image.effect_noise((32, 32), 90).save(buffer, "PNG" if kind == "png" else "JPEG")
        for end in range(0, buffer.tell() // 2, 29):
            files[f"t_{end}.{kind}"] = buffer.getvalue()[:end]
    return files


@pytest.mark.skipif(sys.platform != "linux", reason="needs limits on address space")
def test_hostile_files_are_refused_within_a_gigabyte(tmp_path: Path) -> None:
    family = _family()
    for name, content in family.items():
        (tmp_path / name).write_bytes(content)
    os.mkfifo(tmp_path / "fifo.npy")
    (tmp_path / "folder.npz").mkdir()
    (tmp_path / "zero.png").symlink_to("/dev/zero")
    ran = subprocess.run([sys.executable, "-I", CHILD, tmp_path], capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    told = json.loads(ran.stdout)
    assert not told["wrong"], told["wrong"]
    assert told["refused"] == 4 * (len(family) + 3)
    assert told["grown"] < 1 << 30


def test_an_eps_called_png_starts_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.png"
    path.write_bytes(_family_eps())
    monkeypatch.setattr(subprocess, "check_call", lambda *_, **__: pytest.fail("a program was started"))
    with pytest.raises(TensorError, match="neither PNG nor JPEG"):
        load_input(path, DETAILS)


def _family_eps() -> bytes:
    return b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n"


def test_an_npz_without_arrays_is_no_reason_for_random_values(tmp_path: Path) -> None:
    (tmp_path / "x.npz").write_bytes(_zip())
    with pytest.raises(TensorError, match="holds no arrays"):
        load_inputs([str(tmp_path / "x.npz")], {"x": DETAILS})


def test_what_numpy_writes_is_read(tmp_path: Path) -> None:
    value = np.asfortranarray(np.random.default_rng(0).normal(size=(8, 8, 3))).astype(">f4", order="F")
    np.save(tmp_path / "x.npy", value)
    np.savez_compressed(tmp_path / "x.npz", x=value)
    for name in ("x.npy", "x.npz"):
        np.testing.assert_array_equal(load_input(tmp_path / name, DETAILS)[0], value)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_pipes_and_devices_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(OSError, match="no file"):
            read_labels(path)
        with pytest.raises(OpletError, match="no file"):
            Lock.read(path)
