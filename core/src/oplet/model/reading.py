"""Reading a model's tables from the bytes of a file, after a check of the kind of file."""

from __future__ import annotations

from oplet.errors import ModelError
from oplet.schema import tables
from oplet.schema.decode import decode

__all__ = ["SCHEMA_VERSION", "decoded"]

#: The only version of the schema that runtimes read.
SCHEMA_VERSION = 3
_IDENTIFIER = b"TFL3"
_MINIMUM_SIZE = 8

#: Other files that users try to open: their first bytes, and the advice in the message.
_LOOKALIKES: tuple[tuple[bytes, str], ...] = (
    (b"PK\x03\x04", "a zip archive; a Keras .keras file or an archive must be converted or unpacked first"),
    (b"version https://git-lfs", "a Git LFS pointer; run 'git lfs pull' to get the file itself"),
    (b"<!DOCTYPE", "an HTML page; the download went to a web page, not to the file"),
    (b"<html", "an HTML page; the download went to a web page, not to the file"),
    (b"\x89HDF\r\n", "an HDF5 (Keras .h5) file; convert it with TensorFlow's converter"),
    (b"\x08\x01\x12", "a TensorFlow SavedModel protobuf; convert it with TensorFlow's converter"),
    (b"\x1f\x8b", "a gzip file; unpack it first"),
    *((bytes((8, version, 18)), "an ONNX model; convert it first") for version in range(3, 20)),
)


def decoded(view: memoryview, where: str, unknown: list[str]) -> tables.Model:
    """Decode a model's tables; those of tensors and nodes stay arrays, one per field.

    Args:
        view: the file's bytes.
        where: the file's name in messages.
        unknown: receives descriptions of the first few fields and union members that this schema does not have.

    Raises:
        ModelError: it is another kind of file, of another version of the schema, or damaged.
    """
    head = bytes(view[:32])
    if len(view) < _MINIMUM_SIZE:
        raise ModelError(
            f"Model provided must have at least 7 bytes to hold identifier; there are {len(view)} in {where}. "
            f"The model is not a valid Flatbuffer buffer; fetch it again."
        )
    if head[4:8] != _IDENTIFIER:
        kind = next((words for start, words in _LOOKALIKES if head.startswith(start)), None)
        looks = f" It looks like {kind}." if kind else " It is another kind of file, or damaged."
        found = head[4:8].decode("ascii", "replace").encode("ascii", "backslashreplace").decode()
        found = "".join(c if c.isprintable() else "?" for c in found)
        raise ModelError(
            f"The model is not a valid Flatbuffer buffer: Model provided has model identifier '{found}', should be 'TFL3' in {where}.{looks}"
        )
    root = decode(tables.Model, view, where, unknown, (tables.Tensor, tables.Operator))
    if root.version != SCHEMA_VERSION:
        raise ModelError(
            f"Model provided is schema version {root.version} not equal to supported version {SCHEMA_VERSION}. "
            f"Convert {where} again with a current converter."
        )
    return root
