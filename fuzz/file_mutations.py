"""Mutations of the file as a whole: constants in external files or after the FlatBuffer, appended archives."""

from __future__ import annotations

import io
import zipfile

import numpy as np

from fuzz import byte_mutations, edge_values
from fuzz.choices import Choices
from fuzz.random_parts import some_constant
from oplet.schema import tables

__all__ = ["BESIDE", "MUTATIONS", "attached"]

#: External files beside each model that is opened from a folder, with their sizes in bytes.
BESIDE = {"weights.bin": 1 << 16, "sub/more.bin": 100, "nothing.bin": 0}

_NAMES = (*BESIDE, "missing.bin", "sub", "../weights.bin", "/etc/passwd", "", "a\0b", "link.bin", ".hidden", "C:x", "pipe.bin")


def _external(choices: Choices, root: tables.Model) -> None:
    """Move a constant to an external file."""
    groups = root.external_buffer_groups = list(root.external_buffer_groups or [])
    pieces = root.external_buffers = list(root.external_buffers or [])
    found = some_constant(choices, root)
    if found is None:
        return
    tensor, buffer = found
    size = 0 if buffer.data is None else int(buffer.data.size)
    groups.append(tables.ExternalBufferGroup(name="weights.bin" if choices.chance(75) else choices.choice(_NAMES)))
    piece = tables.ExternalBuffer(id=len(pieces) + 1, group=len(groups) - 1, offset=choices.choice((0, 64, 3)), length=size)
    if choices.chance(15):
        piece.offset, piece.length = edge_values.int_value(choices, 0, 2**64 - 1), edge_values.int_value(choices, 0, 2**64 - 1)
    if choices.chance(8):
        piece.id, piece.group = choices.below(4), choices.below(4)
    pieces.append(piece)
    tensor.external_buffer = piece.id
    if choices.chance(90):
        tensor.buffer = 0


def _in_the_file(choices: Choices, root: tables.Model) -> None:
    """Move a constant behind the FlatBuffer, at an offset of the file, as in files of more than 2 GB."""
    found = some_constant(choices, root)
    if found is None:
        return
    _, buffer = found
    size = 0 if buffer.data is None else int(buffer.data.size)
    buffer.data = None
    buffer.offset = choices.choice((2, 8, 16, 64, 100, 256))
    buffer.size = size if choices.chance(80) else edge_values.int_value(choices, 0, 2**64 - 1)


def _large_options(choices: Choices, root: tables.Model) -> None:
    """Move custom options to an offset of the file."""
    for subgraph in root.subgraphs or []:
        for operator in subgraph.operators or []:
            operator.large_custom_options_offset = choices.choice((0, 2, 16, 64))
            operator.large_custom_options_size = choices.choice((0, 1, 16, 64, 2**32))
    root.buffers = [*(root.buffers or []), tables.Buffer(data=np.frombuffer(choices.raw(16), np.uint8))]


def attached(data: bytes, choices: Choices) -> bytes:
    """The file with a zip archive appended, as TFLite's metadata stores labels; the archive may be damaged."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", choices.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for name in ("labels.txt", "../up.txt", "a/b.txt")[: 1 + choices.below(3)]:
            archive.writestr(zipfile.ZipInfo(name), b"word\n" * choices.below(50))
    tail = stream.getvalue()
    if choices.chance(50):
        tail = byte_mutations.damage(tail, choices)
    return data + bytes(choices.choice((0, 1, 4, 16))) + tail


#: The mutations; repeated ones are chosen more often.
MUTATIONS = (*[_external] * 2, *[_in_the_file] * 1, *[_large_options] * 1)
