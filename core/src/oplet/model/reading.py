"""Reading a model's tables from the bytes of a file, after a check of the kind of file."""

from __future__ import annotations

from oplet.errors import ModelError
from oplet.schema import tables
from oplet.schema.decode import decode
from oplet.texts import shown

__all__ = ["SCHEMA_VERSION", "decoded"]

#: The only version of the schema that runtimes read.
SCHEMA_VERSION = 3
_IDENTIFIER = b"TFL3"
_MINIMUM_SIZE = 8

#: Other files that users try to open: their first bytes, and the advice in the message.
_LOOKALIKES: tuple[tuple[bytes, str], ...] = (
    (
        b"LITERTLM",
        "a LiteRT-LM file (.litertlm), a language model with its tokenizer and other parts; oplet-lm runs it, as does LiteRT-LM",
    ),
    (b"\x89HDF\r\n", "an HDF5 (Keras .h5) file; convert it with TensorFlow's converter"),
    (b"\x08\x01\x12", "a TensorFlow SavedModel protobuf; convert it with TensorFlow's converter"),
    (b"\x1f\x8b", "a gzip file; unpack it first"),
    (b"GGUF", "a GGUF file of llama.cpp, which no TensorFlow Lite runtime reads"),
    *((bytes((8, version, 18)), "an ONNX model; convert it first") for version in range(3, 20)),
)
#: Texts that are found in place of a file, in small letters; blank lines and a byte order mark may come before them.
_TEXTS: tuple[tuple[bytes, str], ...] = (
    (b"version https://git-lfs", "a Git LFS pointer; run 'git lfs pull' to get the file itself"),
    (b"version https://hawser", "a Git LFS pointer; run 'git lfs pull' to get the file itself"),
    (b"/annex/objects/", "a git-annex pointer; run 'git annex get' to get the file itself"),
    *(
        (start, "an HTML page; the download went to a web page, not to the file")
        for start in (b"<!doctype", b"<html", b"<head", b"<?xml")
    ),
)
#: How many bytes of blanks may come before such a text.
_BLANKS = 4096
#: What zip archives begin with, what the first entry's name ends with in bundles of models, and where that name lies.
_ZIP = b"PK\x03\x04"
_MODELS = (".tflite", ".task", "tf_lite_prefill_decode", "tokenizer_model")
_ENTRY_LENGTH, _ENTRY_NAME = 26, 30


def _kind(view: memoryview) -> str:
    """Return what a file that is no model looks like, and what to do about it; "" if that is not known."""
    head = bytes(view[:_BLANKS])
    if head.startswith(_ZIP):
        name = bytes(view[_ENTRY_NAME : _ENTRY_NAME + int.from_bytes(head[_ENTRY_LENGTH : _ENTRY_LENGTH + 2], "little")][:200])
        entry = shown(name.decode("utf-8", "replace"))
        if entry.lower().endswith(_MODELS):
            return (
                f"a zip archive of models, such as MediaPipe's .task, whose first file is '{entry}'; unpack it and open a model in it, "
                "run a language model's with oplet-lm, or the bundle with MediaPipe"
            )
        return "a zip archive; a Keras .keras file or an archive must be converted or unpacked first"
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    found = (words for start, words in _LOOKALIKES if head.startswith(start))
    return next(found, "") or next((words for start, words in _TEXTS if text.startswith(start)), "")


def decoded(view: memoryview, where: str, unknown: list[str]) -> tables.Model:
    """Decode a model's tables; those of tensors and nodes stay arrays, one per field.

    Args:
        view: the file's bytes.
        where: the file's name in messages.
        unknown: receives descriptions of the first few fields and union members that this schema does not have.

    Raises:
        ModelError: the file is no .tflite file, has another version of the schema, or is damaged.
    """
    head = bytes(view[:32])
    if len(view) < _MINIMUM_SIZE:
        raise ModelError(
            f"Model provided must have at least 7 bytes to hold identifier; there are {len(view)} in {where}. "
            f"The model is not a valid Flatbuffer buffer; fetch it again."
        )
    if head[4:8] != _IDENTIFIER:
        kind = _kind(view)
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
