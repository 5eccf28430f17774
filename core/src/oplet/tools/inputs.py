"""Values for a model's inputs: from files of several kinds, or random ones."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet.errors import TensorError
from oplet.tools.pictures import SUFFIXES as PICTURES
from oplet.tools.pictures import load_picture

__all__ = ["fit", "load_input", "load_inputs", "quantize"]

Array = NDArray[Any]
Details = Mapping[str, Any]


def load_inputs(
    given: Sequence[str], details: Mapping[str, Details], *, scale: float | None = None, offset: float | None = None
) -> dict[str, tuple[Array, str]]:
    """Load the inputs that a command line names.

    Args:
        given: "FILE" or "NAME=FILE" each. A file without a name goes to the next input that has none; an .npz or a
            JSON object may hold several inputs by name.
        details: each input's dictionary of `Interpreter.get_input_details`, by name, in order.
        scale: of pixels, see `load_picture`.
        offset: of pixels.

    Returns:
        For each input that was given, its value and the file it came from.

    Raises:
        TensorError: a name is unknown or given twice, or a value does not fit.
        OSError: a file cannot be read.
    """
    named: list[tuple[str, Path]] = []
    unnamed: list[Path] = []
    for text in given:
        name, path = _split(text, details)
        if name is None:
            unnamed.append(path)
        else:
            named.append((name, path))
    values: dict[str, tuple[Array, str]] = {}

    def put(name: str, value: Any, path: Path) -> None:
        if name not in details:
            raise TensorError(f"'{path}' has a value for '{name}', which is no input of the model; {_takes(details)}.")
        if name in values:
            raise TensorError(f"The input '{name}' is given twice: by '{values[name][1]}' and by '{path}'.")
        values[name] = fit(value, details[name], name, str(path)), str(path)

    def put_file(name: str, path: Path) -> None:
        put(name, load_input(path, details[name], name, scale=scale, offset=offset), path)

    for name, path in named:
        put_file(name, path)
    for path in unnamed:
        several = _read_named(path)
        if several is not None and not (len(several) == 1 and len(details) == 1):
            for name, value in several.items():
                put(name, value, path)
            continue
        free = [name for name in details if name not in values]
        if not free:
            raise TensorError(f"There is no input left for '{path}'; {_takes(details)}.")
        put_file(free[0], path)
    return values


def load_input(path: Path, details: Details, name: str = "", *, scale: float | None = None, offset: float | None = None) -> Array:
    """The value of one input from a .npy, .npz, .json or picture file.

    Args:
        path: the file.
        details: the input's dictionary of `Interpreter.get_input_details`.
        name: what messages call the input, and which array of an .npz or entry of a JSON object to take.
        scale: of pixels, see `load_picture`.
        offset: of pixels.

    Raises:
        TensorError: the file is of another kind, damaged, or its value does not fit.
        OSError: the file cannot be read.
    """
    name = name or str(details["name"])
    if path.suffix.lower() in PICTURES:
        value: Any = load_picture(path, details, name, scale=scale, offset=offset)
    else:
        several = _read_named(path)
        if several is None:
            value = _read(path)
        elif name in several:
            value = several[name]
        elif len(several) == 1:
            [value] = several.values()
        else:
            raise TensorError(f"'{path}' has no entry '{name}'; it has {_list(several)}.")
    return fit(value, details, name, str(path))


def fit(value: Any, details: Details, name: str, source: str) -> Array:
    """A value in the type and shape of an input.

    Real numbers for a quantized input are quantized; whole numbers are taken as they are. Dimensions of 1 may be missing
    or extra, and free dimensions (-1 in the shape signature) take any size.

    Raises:
        TensorError: the value does not fit.
    """
    dtype = np.dtype(details["dtype"])
    if dtype.kind == "S":
        return _fit_shape(_strings(value, name, source), details, name, source)
    try:
        with warnings.catch_warnings():  # numpy before 1.24 warns of ragged lists where later ones raise
            warnings.simplefilter("ignore")
            array = np.asarray(value)
    except ValueError:
        array = np.asarray(None)
    if array.dtype.hasobject:
        raise TensorError(
            f"The value of input '{name}' in '{source}' is no array of numbers: its rows differ in length, or hold else."
        )
    if array.dtype.kind not in "biufcV":
        raise TensorError(f"'{source}' holds {array.dtype} values, input '{name}' takes {dtype.name}.")
    return _fit_shape(_fit_type(array, details, dtype, name, source), details, name, source)


def _fit_type(array: Array, details: Details, dtype: np.dtype[Any], name: str, source: str) -> Array:
    if array.dtype == dtype:
        return array
    if dtype.kind in "iu" and array.dtype.kind == "f" and details["quantization"][0]:
        return quantize(array, details)
    if dtype.kind in "iub":
        with np.errstate(invalid="ignore"):
            cast = array.astype(dtype) if array.dtype.kind in "biuf" else None
        if cast is None or not np.array_equal(cast, array):
            raise TensorError(f"'{source}' holds {array.dtype} values that are no {dtype.name}, which input '{name}' takes.")
        return cast
    if array.dtype.kind == "c" and dtype.kind != "c":
        raise TensorError(f"'{source}' holds complex values, input '{name}' takes {dtype.name}.")
    return array.astype(dtype)


def quantize(real: Array, details: Details) -> Array:
    """Real numbers as a quantized tensor's integers, rounded to nearest and clamped to its type."""
    scale, zero_point = details["quantization"]
    limits = np.iinfo(details["dtype"])
    integers = np.nan_to_num(np.rint(real.astype(np.float64) / scale) + zero_point)
    clamped: Array = np.clip(integers, limits.min, limits.max).astype(details["dtype"])
    return clamped


def _fit_shape(array: Array, details: Details, name: str, source: str) -> Array:
    shape = tuple(map(int, details["shape"]))
    signature = tuple(map(int, details["shape_signature"])) or shape
    if len(signature) != len(shape):
        signature = shape
    if _matches(array.shape, signature):
        return array
    # The sizes that count must agree; of free dimensions there must be no doubt which is which.
    if -1 not in signature:
        if [d for d in array.shape if d != 1] == [d for d in shape if d != 1]:
            return array.reshape(shape)
    else:
        padded = (1,) * (len(signature) - array.ndim) + array.shape
        if _matches(padded, signature):
            return array.reshape(padded)
    raise TensorError(f"'{source}' has the shape {_shape(array.shape)}, input '{name}' takes {_shape(signature)}.")


def _matches(shape: Sequence[int], signature: Sequence[int]) -> bool:
    return len(shape) == len(signature) and all(s in (-1, d) for d, s in zip(shape, signature))


def _shape(shape: Sequence[int]) -> str:
    return "[" + ", ".join("any" if dim == -1 else str(dim) for dim in shape) + "]"


def _strings(value: Any, name: str, source: str) -> Array:
    array = np.asarray(value, object)
    flat = np.empty(array.size, object)
    for i, item in enumerate(array.ravel().tolist()):
        if not isinstance(item, str | bytes):
            raise TensorError(f"'{source}' holds {item!r} where input '{name}' takes text.")
        flat[i] = item.encode() if isinstance(item, str) else item
    return flat.reshape(array.shape)


def _split(text: str, details: Mapping[str, Details]) -> tuple[str | None, Path]:
    """The input's name, if one is said, and the file; both may have a "=" in them."""
    for name in sorted(details, key=len, reverse=True):
        if text.startswith(f"{name}="):
            return name, Path(text[len(name) + 1 :])
    before, equals, _ = text.partition("=")
    if equals and not Path(text).exists():
        raise TensorError(f"The model has no input '{before}'; {_takes(details)}.")
    return None, Path(text)


def _read_named(path: Path) -> dict[str, Any] | None:
    """The entries of an .npz or of a JSON object; None for files that hold one value."""
    if path.suffix.lower() not in (".npz", ".json"):
        return None
    content = _read(path)
    return content if isinstance(content, dict) else None


def _read(path: Path) -> Any:
    # Here, so that a program which runs on random values or pictures starts without them.
    import json
    import zipfile
    import zlib

    suffix = path.suffix.lower()
    try:
        if suffix == ".json":
            return json.loads(path.read_text(encoding="utf-8"))
        if suffix == ".npy":
            with path.open("rb") as file:
                return np.lib.format.read_array(file, allow_pickle=False)
        if suffix == ".npz":
            with np.load(path, allow_pickle=False) as arrays:
                return {name: arrays[name] for name in arrays.files}
    except (ValueError, EOFError, MemoryError, RecursionError, zipfile.BadZipFile, zlib.error) as error:
        raise TensorError(f"'{path}' is no {suffix} file, or a damaged one: {error}.") from error
    kinds = ", ".join([".npy", ".npz", ".json", *PICTURES])
    raise TensorError(f"'{path}' is of no kind that can be an input; the kinds are {kinds}.")


def _takes(details: Mapping[str, Details]) -> str:
    return f"it takes {_list(details)}" if details else "it takes none"


def _list(names: Mapping[str, Any]) -> str:
    return ", ".join(f"'{name}'" for name in names)
