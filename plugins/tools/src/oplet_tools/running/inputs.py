"""Loader of input values from .npy, .npz, .json and picture files; `oplet_tools.running.values.conversion` converts them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet.errors import TensorError
from oplet.toolkit import read_file
from oplet_tools.running.npy_files import Header, npz_names, read_npy, read_npz
from oplet_tools.running.pictures import SUFFIXES as PICTURES
from oplet_tools.running.pictures import Picture, load_picture
from oplet_tools.running.values.conversion import check_type, convert_input, shape_for
from oplet_tools.running.values.notices import Notice, NoticeCallback, warn
from oplet_tools.running.values.preprocessing import Preprocessing

__all__ = ["Entry", "RowsError", "fitted", "load_input", "load_inputs", "notify_of_random", "parse_json", "split_input"]

Array = NDArray[Any]
Details = Mapping[str, Any]
#: Reads a value for an input, given the input's details and name.
Entry = Callable[[Details, str], Any]

#: The name of the value in a file that holds one unnamed value.
_UNNAMED = ""
#: What numpy.savez calls an array that was given no name.
_NUMPYS_NAME = "arr_0"
#: Most bytes of a value whose size the file decides (free dimensions, strings); the file's own size if that is larger.
_MOST_BYTES = 256 << 20
#: Approximate memory of a string object, in bytes.
_TEXT_OBJECT = 64
#: The JSON integer -0, whose sign Python's reader drops.
_NEGATIVE_ZERO = re.compile(rb"-0(?![0-9.eE])")


class RowsError(TensorError):
    """An input of a single run was given an array with many rows, each of which would fit (`oplet run` runs each row)."""


def load_inputs(
    given: Sequence[str],
    details: Mapping[str, Details],
    *,
    scale: float | None = None,
    offset: float | None = None,
    preprocessing: Preprocessing | None = None,
    raw: bool = False,
    notify: NoticeCallback = warn,
) -> dict[str, tuple[Array, str]]:
    """Load inputs from files.

    The files hold real values, which are quantized if the input is; with `raw` they hold the input's integers.

    Args:
        given: "FILE" or "NAME=FILE" each. A file without a name goes to the next input that has none; an .npz or a
            JSON object may hold several inputs by name.
        details: each input's dictionary of `Interpreter.get_input_details`, by name, in order.
        scale: pixels of pictures become pixel * scale + offset; None as in `load_picture`.
        offset: see `scale`.
        preprocessing: the preprocessing of pictures, see `load_picture`.
        raw: whether files hold a quantized input's integers, not real values.
        notify: called with a notice of each change to a value (clamped, resized, scaled).

    Returns:
        For each input that was given, its value and the file it came from.

    Raises:
        TensorError: a name is unknown or given twice, or a value does not fit (a `RowsError` where it is rows of values that do).
        OSError: a file cannot be read.
    """
    named: list[tuple[str, Path]] = []
    unnamed: list[Path] = []
    for text in given:
        name, path = split_input(text, details)
        if name is None:
            unnamed.append(path)
        else:
            named.append((name, path))
    values: dict[str, tuple[Array, str]] = {}

    def put(name: str, entry: Entry, path: Path) -> None:
        if name not in details:
            raise TensorError(f"'{path}' has a value for '{name}', which is no input of the model; {_takes(details)}.")
        if name in values:
            raise TensorError(f"The input '{name}' is given twice: by '{values[name][1]}' and by '{path}'.")
        values[name] = fitted(entry, details[name], name, path, raw, notify), str(path)

    def put_file(name: str, path: Path) -> None:
        put(name, _entry(path, scale, offset, preprocessing), path)

    for name, path in named:
        put_file(name, path)
    for path in unnamed:
        several = _entries(path)
        if several is not None and _UNNAMED not in several and not (len(several) == 1 and len(details) == 1):
            for name, entry in several.items():
                put(name, entry, path)
            continue
        free = [name for name in details if name not in values]
        if not free:
            raise TensorError(f"There is no input left for '{path}'; {_takes(details)}.")
        put_file(free[0], path)
        if several is not None and (other := _other_name(several, free[0])):
            text = f"'{path}' has no value of that name; its only one, '{other}', is taken"
            notify(Notice("other name", free[0], text, {"name": other}))
    return values


def notify_of_random(given: Mapping[str, Any], details: Mapping[str, Details], notify: NoticeCallback) -> None:
    """Notify of each input that was given no value where others were: it was probably forgotten, and its values are random.

    Args:
        given: the inputs that were given, by name; if empty, all random values are intended and there is no notice.
        details: all inputs, by name.
        notify: called with a notice of each input that is missing.
    """
    if given:
        for name in details:
            if name not in given:
                notify(
                    Notice("random", name, "no value was given for it, so that its values are random; give one with NAME=FILE")
                )


def _other_name(entries: Mapping[str, Any], wanted: str) -> str:
    """Return the name of the only entry of a file, "" if it stands for the input: its own name, a short form of it, or none."""
    [name] = entries
    short = wanted.removeprefix("serving_default_").removesuffix(":0")
    return "" if name in (wanted, short, _UNNAMED, _NUMPYS_NAME) else name


def load_input(
    path: Path,
    details: Details,
    name: str = "",
    *,
    scale: float | None = None,
    offset: float | None = None,
    raw: bool = False,
    notify: NoticeCallback = warn,
) -> Array:
    """Load the value of one input from a .npy, .npz, .json or picture file.

    Args:
        path: the file.
        details: the input's dictionary of `Interpreter.get_input_details`.
        name: the input's name, in messages and for finding its array in an .npz or its entry in a JSON object.
        scale: pixels of pictures become pixel * scale + offset; None as in `load_picture`.
        offset: see `scale`.
        raw: whether the file holds a quantized input's integers, not real values.
        notify: called with a notice of each change to the value.

    Raises:
        TensorError: the file is of another kind, damaged, or its value does not fit.
        OSError: the file cannot be read.
    """
    name = name or str(details["name"])
    return fitted(_entry(path, scale, offset, None), details, name, path, raw, notify)


def _entry(path: Path, scale: float | None, offset: float | None, preprocessing: Preprocessing | None) -> Entry:
    """Return a function that reads one input's value from a file: the file's only value, or the one with the input's name."""

    def read(details: Details, name: str) -> Any:
        if path.suffix.lower() in PICTURES:
            return load_picture(path, details, name, scale=scale, offset=offset, preprocessing=preprocessing or Preprocessing())
        several = _entries(path)
        if several is None:
            return _npy(path, details, name)
        if name in several:
            return several[name](details, name)
        if len(several) == 1:
            [entry] = several.values()
            return entry(details, name)
        raise TensorError(f"'{path}' has no entry '{name}'; it has {_list(several)}.")

    return read


def fitted(entry: Entry, details: Details, name: str, path: Path | str, raw: bool, notify: NoticeCallback) -> Array:
    """Read an input's value with `entry`, and convert it to the input's type and shape.

    Args:
        entry: reads the value, given the input's details and name.
        details: the input's details.
        name: the input's name.
        path: the value's file, or a name of the value for messages.
        raw: whether the value is a quantized input's integers, not real values.
        notify: called with a notice of each change to the value.

    Raises:
        TensorError: the value does not fit.
        OSError: its file cannot be read.
    """
    try:
        value: Any = entry(details, name)
        if isinstance(value, Picture):
            notify(value.notice(name))
            value, raw = value.pixels, raw or value.raw
        return convert_input(value, details, name, str(path), raw=raw, notify=notify)
    except MemoryError as error:
        raise TensorError(
            f"There is not enough memory for the value of input '{name}' in '{path}'; give it in the input's type, "
            f"{np.dtype(details['dtype']).name}, and in a smaller shape where it has free dimensions."
        ) from error


def _check_header(details: Details, name: str, source: str, header: Header, held: int) -> None:
    """Check an array's header before the elements are read: dtype, shape and size (`held`: the file's) must suit the input."""
    dtype = np.dtype(details["dtype"])
    check_type(header.dtype, dtype, name, source)
    try:
        shape_for(header.shape, details, name, source)
    except TensorError as error:
        if header.shape and _fits(header.shape[1:], details, name):
            raise RowsError(str(error)) from error
        raise
    fixed = tuple(map(int, details["shape_signature"])) or tuple(map(int, details["shape"]))
    item = header.dtype.itemsize + _TEXT_OBJECT if dtype.kind == "S" else max(header.dtype.itemsize, dtype.itemsize)
    most = max(_MOST_BYTES, held)
    text_in_fixed = dtype.kind == "S" and header.nbytes > most
    if (-1 in fixed and item * (header.nbytes // max(header.dtype.itemsize, 1)) > most) or text_in_fixed:
        raise TensorError(
            f"'{source}' holds {list(header.shape)} values of {header.dtype} for input '{name}', more than the {most} bytes that a "
            "file of its size may give; give fewer, or an .npy file."
        )


def _fits(shape: tuple[int, ...], details: Details, name: str) -> bool:
    try:
        shape_for(shape, details, name, "")
    except TensorError:
        return False
    return True


def split_input(text: str, details: Mapping[str, Details]) -> tuple[str | None, Path]:
    """Split NAME=FILE into the input's name, None if there is none, and the file; both may contain "="."""
    for name in sorted(details, key=len, reverse=True):
        if text.startswith(f"{name}="):
            return name, Path(text[len(name) + 1 :])
    before, equals, _ = text.partition("=")
    if equals and not Path(text).exists():
        raise TensorError(f"The model has no input '{before}'; {_takes(details)}.")
    return None, Path(text)


def _entries(path: Path) -> dict[str, Entry] | None:
    """Return a reader for each array of an .npz or each entry of a JSON object, by name; None for files that hold one value."""
    suffix = path.suffix.lower()
    if suffix == ".npz":
        return {name: partial(_npz, path, name) for name in npz_names(path)}
    if suffix == ".json":
        content = _read_json(path)
        if not isinstance(content, dict):
            return {_UNNAMED: partial(_given, content)}
        if not content:
            raise TensorError(f"'{path}' holds no values; write it again, or leave it out for random values.")
        return {name: partial(_given, value) for name, value in content.items()}
    if suffix in (".npy", *PICTURES):
        return None
    kinds = ", ".join([".npy", ".npz", ".json", *PICTURES])
    raise TensorError(f"'{path}' is of no kind that can be an input; the kinds are {kinds}.")


def _read_json(path: Path) -> Any:
    return parse_json(read_file(path), str(path))


def parse_json(content: bytes, source: str, kind: str = ".json file") -> Any:
    """Parse JSON text in UTF-8; the sign of an integer -0 is kept and numbers beyond float64 are refused.

    Args:
        content: the text.
        source: the name of the text in messages.
        kind: the expected kind of file, in messages.

    Raises:
        TensorError: the text is not JSON, is nested too deeply, or two entries of an object have the same name.
    """
    import json  # imported late: programs that read other files start faster

    try:
        signed = _NEGATIVE_ZERO.search(content) is not None
        return json.loads(
            content.decode("utf-8"), parse_float=_float, parse_int=_integer if signed else None, object_pairs_hook=_object
        )
    except RecursionError as error:
        raise TensorError(f"'{source}' is nested too deeply for a value of an input; give nested lists of numbers.") from error
    except MemoryError as error:
        raise TensorError(f"There is not enough memory for '{source}'; give its value as .npy.") from error
    except ValueError as error:
        raise TensorError(f"'{source}' is no {kind}, or a damaged one: {error}.") from error


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:40]} is beyond float64; Infinity stands for the infinite")
    return number


def _integer(text: str) -> float | int:
    return -0.0 if text == "-0" else int(text)


def _object(entries: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(entries)
    if len(found) < len(entries):
        raise ValueError("two entries of an object have the same name")
    return found


def _given(value: Any, details: Details, name: str) -> Any:
    return value


def _npy(path: Path, details: Details, name: str) -> Array:
    return read_npy(path, partial(_check_header, details, name, str(path)))


def _npz(path: Path, entry: str, details: Details, name: str) -> Array:
    return read_npz(path, entry, partial(_check_header, details, name, str(path)))


def _takes(details: Mapping[str, Details]) -> str:
    return f"it takes {_list(details)}" if details else "it takes none"


def _list(names: Mapping[str, Any]) -> str:
    return ", ".join(f"'{name}'" for name in names)
