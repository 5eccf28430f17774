"""Writes a model's outputs to a file, and picks the highest scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oplet import write_atomically
from oplet.errors import TensorError
from oplet.schema.naming import shown
from oplet.toolkit import atomic_write, read_file
from oplet_tools.running.values.quantization import dequantize

if TYPE_CHECKING:
    from oplet_tools.metadata.scores import ScoreRules

__all__ = ["Score", "as_lists", "check_member", "check_suffix", "read_labels", "save_outputs", "top_scores"]

Array = NDArray[Any]
#: Longest name of a zip member in bytes, with room for numpy's suffix.
_LONGEST_MEMBER = 65_000
_SUFFIXES = (".npz", ".npy", ".json")


@dataclass(frozen=True)
class Score:
    """One of the highest values of an output."""

    index: int  #: Its index in the output.
    label: str  #: Its label, "" if there is none.
    value: float  #: The value; of a quantized output the real value, or the integer if integers were asked for (`raw`).


def top_scores(
    values: Array,
    details: Mapping[str, Any],
    count: int,
    labels: Sequence[str] = (),
    *,
    raw: bool = False,
    rules: ScoreRules | None = None,
) -> list[Score]:
    """Return the highest values of an output that is one row of scores, in descending order.

    Args:
        values: the output.
        details: its dictionary of `Interpreter.get_output_details`.
        count: the number of scores.
        labels: labels of the scores, in order.
        raw: whether to return a quantized output's integers in place of real values; they are neither calibrated nor left out.
        rules: the calibration of the scores, and the threshold below which scores are left out.

    Raises:
        TensorError: the output is not one row of numbers.
    """
    if values.dtype.kind not in "iufV" or values.size != max(values.shape, default=1):
        raise TensorError(f"Output '{details['name']}' of shape {list(values.shape)} is not one row of scores.")
    scores = (values if raw else dequantize(values, details)).reshape(-1).astype(np.float64)
    kept = np.ones(scores.shape, np.bool_)
    if rules is not None and not raw:
        scores = scores if rules.calibration is None else rules.calibration.apply(scores)
        kept = rules.kept(scores)
    # NaN comes first, so that it is noticed; equal scores stay in order.
    order = np.argsort(np.where(np.isnan(scores), -np.inf, -scores), kind="stable")[:count]
    return [Score(int(i), labels[i] if i < len(labels) else "", float(scores[i])) for i in order if kept[i]]


def read_labels(path: Path) -> list[str]:
    """Read labels from a text file, one per line.

    Raises:
        TensorError: the file is not text.
        OSError: the file cannot be read, is not an ordinary file, or is larger than `oplet.model.files.regular_files.TEXT_BYTES`.
    """
    try:
        lines = read_file(path).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise TensorError(f"'{path}' is not a text file in UTF-8: {error.reason}.") from error
    return [line.strip() for line in lines]


def check_suffix(path: Path) -> None:
    """Check that `save_outputs` can write a file with this suffix.

    Raises:
        TensorError: the suffix is unknown.
    """
    if path.suffix.lower() not in _SUFFIXES:
        raise TensorError(f"'{path}' must end in {', '.join(_SUFFIXES[:-1])} or {_SUFFIXES[-1]}.")


def save_outputs(outputs: Mapping[str, Array], path: Path) -> None:
    """Write arrays to a file unchanged: .npz and .json by name, .npy for a single one.

    `oplet_tools.running.run.Value.displayed` gives real values. In .json, bytes that are not UTF-8 become lone surrogates, U+DC80 to U+DCFF, as
    Python's "surrogateescape" makes them.

    Raises:
        TensorError: the suffix is unknown, there are several outputs for an .npy, or a string ends in NUL, which .npy and .npz
            cannot hold.
        OSError: the file cannot be written.
    """
    import json
    import zipfile

    check_suffix(path)
    suffix = path.suffix.lower()
    if suffix == ".json":
        write_atomically(path, json.dumps({name: as_lists(value) for name, value in outputs.items()}) + "\n")
        return
    arrays = {name: _storable(value, name, path) for name, value in outputs.items()}
    if suffix == ".npy":
        if len(arrays) != 1:
            raise TensorError(f"An .npy file holds one array and the model has {len(arrays)} outputs; write an .npz.")
        [array] = arrays.values()
        with atomic_write(path) as file:
            np.lib.format.write_array(file, array, allow_pickle=False)
        return
    for name in arrays:
        check_member(name, path)
    # np.savez takes names as keyword arguments, which collide with its parameter "file".
    with atomic_write(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)


def check_member(name: str, path: Path) -> None:
    """Check that an output's name can be the name of a zip member, and does not lead out of the folder that it is unpacked in."""
    reason = ""
    try:
        if len(name.encode()) > _LONGEST_MEMBER:
            reason = f"is longer than {_LONGEST_MEMBER} bytes"
    except UnicodeEncodeError:
        reason = "is not UTF-8"
    if "\0" in name:
        reason = "has a NUL"
    if name.startswith(("/", "\\")) or name[1:3] in (":/", ":\\") or ".." in name.replace("\\", "/").split("/"):
        reason = "leads elsewhere when an archive is unpacked"
    if reason:
        raise TensorError(f"'{path}' cannot hold the output '{shown(name)}', whose name {reason}; write a .json, which can.")


def _storable(array: Array, name: str, path: Path) -> Array:
    """Convert the array to a dtype that numpy's files support: strings as bytes of one length, bfloat16 and the like as
    float32.
    """
    if array.dtype.hasobject:
        texts = [bytes(item) for item in array.ravel().tolist()]
        if any(text.endswith(b"\0") for text in texts):
            raise TensorError(f"'{path}' cannot hold the text of '{shown(name)}' that ends in a NUL; write a .json, which can.")
        return np.array(texts, np.bytes_).reshape(array.shape)
    return array.astype(np.float32) if array.dtype.kind == "V" else array


def as_lists(array: Array) -> Any:
    """Convert the array to nested lists of JSON types: complex numbers as pairs, bytes as text."""
    if array.dtype.hasobject or array.dtype.kind == "S":
        text = np.empty(array.size, object)
        text[:] = [bytes(item).decode(errors="surrogateescape") for item in array.ravel().tolist()]
        return text.reshape(array.shape).tolist()
    if array.dtype.kind == "c":
        return np.stack([array.real, array.imag], axis=-1).tolist()
    return (array.astype(np.float32) if array.dtype.kind == "V" else array).tolist()
