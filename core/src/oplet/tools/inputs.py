"""Values for a model's inputs: from files of several kinds, or random ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet.errors import TensorError
from oplet.model.files import read_file
from oplet.tools.arrays import Header, npz_names, read_npy, read_npz
from oplet.tools.pictures import SUFFIXES as PICTURES
from oplet.tools.pictures import load_picture

__all__ = ["fit", "load_input", "load_inputs", "quantize"]

Array = NDArray[Any]
Details = Mapping[str, Any]
#: Reads a value, once it is known for which input: its details and its name.
Entry = Callable[[Details, str], Any]

#: What the only value of a file without names is called.
_UNNAMED = ""
#: Bytes of a value whose size the file alone decides, where the file itself has fewer.
_MOST_BYTES = 256 << 20
#: What a text takes as an object, in bytes, about.
_TEXT_OBJECT = 64
#: Values that are converted at once.
_BLOCK = 1 << 20


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

    def put(name: str, entry: Entry, path: Path) -> None:
        if name not in details:
            raise TensorError(f"'{path}' has a value for '{name}', which is no input of the model; {_takes(details)}.")
        if name in values:
            raise TensorError(f"The input '{name}' is given twice: by '{values[name][1]}' and by '{path}'.")
        values[name] = _fitted(entry, details[name], name, path), str(path)

    def put_file(name: str, path: Path) -> None:
        put(name, lambda details, name: load_input(path, details, name, scale=scale, offset=offset), path)

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
        entry: Entry = partial(_picture, path, scale=scale, offset=offset)
    else:
        several = _entries(path)
        if several is None:
            entry = partial(_npy, path)
        elif name in several:
            entry = several[name]
        elif len(several) == 1:
            [entry] = several.values()
        else:
            raise TensorError(f"'{path}' has no entry '{name}'; it has {_list(several)}.")
    return _fitted(entry, details, name, path)


def _fitted(entry: Entry, details: Details, name: str, path: Path) -> Array:
    try:
        return fit(entry(details, name), details, name, str(path))
    except MemoryError as error:
        raise TensorError(
            f"There is not enough memory for the value of input '{name}' in '{path}'; give it in the input's type, "
            f"{np.dtype(details['dtype']).name}, and in a smaller shape where it has free dimensions."
        ) from error


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
    array = _array(value)
    if array is None or array.dtype.hasobject:
        raise TensorError(
            f"The value of input '{name}' in '{source}' is no array of numbers: its rows differ in length, or hold else; "
            f"input '{name}' takes {dtype.name}."
        )
    _check_type(array.dtype, dtype, name, source)
    return _fit_shape(_fit_type(array, details, dtype, name, source), details, name, source)


def _fit_type(array: Array, details: Details, dtype: np.dtype[Any], name: str, source: str) -> Array:
    if array.dtype == dtype:
        return array
    if dtype.kind in "iu" and array.dtype.kind == "f" and details["quantization"][0]:
        return quantize(array, details)
    if dtype.kind in "iub":
        if array.dtype.kind not in "biuf" or (cast := _exactly(array, dtype)) is None:
            raise TensorError(f"'{source}' holds {array.dtype} values that are no {dtype.name}, which input '{name}' takes.")
        return cast
    with np.errstate(all="ignore"):
        return array.astype(dtype)


def _exactly(array: Array, dtype: np.dtype[Any]) -> Array | None:
    """The numbers in another type, None if it cannot hold one of them."""
    cast = np.empty(array.size, dtype)
    flat = array.reshape(-1)
    with np.errstate(all="ignore"):
        for start in range(0, array.size, _BLOCK):
            block = flat[start : start + _BLOCK]
            cast[start : start + _BLOCK] = block.astype(dtype)
            if not np.array_equal(cast[start : start + _BLOCK], block):
                return None
    return cast.reshape(array.shape)


def _check_type(given: np.dtype[Any], dtype: np.dtype[Any], name: str, source: str) -> None:
    if dtype.kind == "S":
        if given.kind not in "SUO":
            raise TensorError(f"'{source}' holds {given} values where input '{name}' takes text.")
    elif given.kind not in "biufcV" or (given.kind == "V" and given != dtype):
        raise TensorError(f"'{source}' holds {given} values, input '{name}' takes {dtype.name}.")
    elif given.kind == "c" and dtype.kind != "c":
        raise TensorError(f"'{source}' holds complex values, input '{name}' takes {dtype.name}.")


def quantize(real: Array, details: Details) -> Array:
    """Real numbers as a quantized tensor's integers, rounded to nearest and clamped to its type."""
    scale, zero_point = details["quantization"]
    limits = np.iinfo(details["dtype"])
    integers = np.empty(real.size, details["dtype"])
    flat = real.reshape(-1)
    with np.errstate(all="ignore"):
        for start in range(0, real.size, _BLOCK):
            steps = np.nan_to_num(np.rint(flat[start : start + _BLOCK].astype(np.float64) / scale) + zero_point)
            integers[start : start + _BLOCK] = np.clip(steps, limits.min, limits.max).astype(details["dtype"])
    return integers.reshape(real.shape)


def _fit_shape(array: Array, details: Details, name: str, source: str) -> Array:
    return array.reshape(_shape_for(array.shape, details, name, source))


def _shape_for(given: tuple[int, ...], details: Details, name: str, source: str) -> tuple[int, ...]:
    """The shape that a value of this one takes as an input; both have the same elements."""
    shape = tuple(map(int, details["shape"]))
    signature = tuple(map(int, details["shape_signature"])) or shape
    if len(signature) != len(shape):
        signature = shape
    if _matches(given, signature):
        return given
    # The sizes that count must agree; of free dimensions there must be no doubt which is which.
    if -1 not in signature:
        if [d for d in given if d != 1] == [d for d in shape if d != 1]:
            return shape
    else:
        padded = (1,) * (len(signature) - len(given)) + given
        if _matches(padded, signature):
            return padded
    raise TensorError(f"'{source}' has the shape {_shape(given)}, input '{name}' takes {_shape(signature)}.")


def _judge(details: Details, name: str, source: str, header: Header, held: int) -> None:
    """Refuse an array by its header."""
    dtype = np.dtype(details["dtype"])
    _check_type(header.dtype, dtype, name, source)
    _shape_for(header.shape, details, name, source)
    fixed = tuple(map(int, details["shape_signature"])) or tuple(map(int, details["shape"]))
    item = header.dtype.itemsize + _TEXT_OBJECT if dtype.kind == "S" else max(header.dtype.itemsize, dtype.itemsize)
    most = max(_MOST_BYTES, held)
    text_in_fixed = dtype.kind == "S" and header.nbytes > most
    if (-1 in fixed and item * (header.nbytes // max(header.dtype.itemsize, 1)) > most) or text_in_fixed:
        raise TensorError(
            f"'{source}' holds {_shape(header.shape)} values of {header.dtype} for input '{name}', more than the {most} bytes that a "
            "file of its size may give; give fewer, or an .npy file."
        )


def _matches(shape: Sequence[int], signature: Sequence[int]) -> bool:
    return len(shape) == len(signature) and all(s in (-1, d) for d, s in zip(shape, signature))


def _shape(shape: Sequence[int]) -> str:
    return "[" + ", ".join("any" if dim == -1 else str(dim) for dim in shape) + "]"


def _strings(value: Any, name: str, source: str) -> Array:
    try:
        array = np.asarray(value, object)
        flat = np.empty(array.size, object)
        for i, item in enumerate(array.ravel().tolist()):
            if not isinstance(item, str | bytes):
                what = repr(item)[:40] if isinstance(item, int | float | bool | None) else f"a {type(item).__name__}"
                raise TensorError(f"'{source}' holds {what} where input '{name}' takes text.")
            flat[i] = item.encode() if isinstance(item, str) else item
    except TensorError:
        raise
    except (ValueError, OverflowError) as error:  # rows that differ, half a surrogate pair, characters that are none
        raise TensorError(
            f"'{source}' holds text for input '{name}' that has no form in UTF-8, or uneven rows: {error}."
        ) from error
    return flat.reshape(array.shape)


def _array(value: Any) -> Array | None:
    """Numbers in nested lists as an array; None for anything else, before numpy makes room for it."""
    if not isinstance(value, list):
        try:
            return np.asarray(value)
        except (ValueError, OverflowError, TypeError):
            return None
    shape: list[int] = []
    level: list[Any] = [value]
    while level and all(isinstance(row, list) for row in level):
        shape.append(len(level[0]))
        if len(shape) > 32 or any(len(row) != shape[-1] for row in level):
            return None
        level = list(chain.from_iterable(level))
    if any(issubclass(kind, (str, bytes, list, dict)) for kind in {*map(type, level)}):
        return None  # numpy would give every text the room of the longest
    try:
        return np.asarray(level).reshape(shape) if {*map(type, level)} <= {int, float, bool} else np.asarray(value)
    except (ValueError, OverflowError, TypeError):
        return None


def _split(text: str, details: Mapping[str, Details]) -> tuple[str | None, Path]:
    """The input's name, if one is said, and the file; both may have a "=" in them."""
    for name in sorted(details, key=len, reverse=True):
        if text.startswith(f"{name}="):
            return name, Path(text[len(name) + 1 :])
    before, equals, _ = text.partition("=")
    if equals and not Path(text).exists():
        raise TensorError(f"The model has no input '{before}'; {_takes(details)}.")
    return None, Path(text)


def _entries(path: Path) -> dict[str, Entry] | None:
    """The entries of an .npz or of a JSON object; None for files that hold one value."""
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
    import json  # here, so that a program which runs on random values or pictures starts without it

    content = read_file(path)
    try:
        return json.loads(content.decode("utf-8"))
    except RecursionError as error:
        raise TensorError(f"'{path}' is nested too deeply for a value of an input; give nested lists of numbers.") from error
    except MemoryError as error:
        raise TensorError(f"There is not enough memory for '{path}'; give its value as .npy.") from error
    except ValueError as error:
        raise TensorError(f"'{path}' is no .json file, or a damaged one: {error}.") from error


def _given(value: Any, details: Details, name: str) -> Any:
    return value


def _picture(path: Path, details: Details, name: str, *, scale: float | None, offset: float | None) -> Array:
    return load_picture(path, details, name, scale=scale, offset=offset)


def _npy(path: Path, details: Details, name: str) -> Array:
    return read_npy(path, partial(_judge, details, name, str(path)))


def _npz(path: Path, entry: str, details: Details, name: str) -> Array:
    return read_npz(path, entry, partial(_judge, details, name, str(path)))


def _takes(details: Mapping[str, Details]) -> str:
    return f"it takes {_list(details)}" if details else "it takes none"


def _list(names: Mapping[str, Any]) -> str:
    return ", ".join(f"'{name}'" for name in names)
