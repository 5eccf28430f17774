"""Sizes of results, reckoned before they are converted and written.

`Limits` bound what a model's tensors take. Written, they may take much more: each text is as long as the longest in an .npz, one text that many
elements share is written for each of them, and a number becomes up to 26 characters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from oplet.errors import TensorError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MOST_RESULT_BYTES", "OPTION", "check_result_bytes", "result_bytes"]

#: Most bytes of the results of one run, or of one row of many, unless the user says otherwise.
MOST_RESULT_BYTES = 1 << 30
#: The option that raises it.
OPTION = "--max-result-bytes"
#: Characters of a number in JSON, with what separates it from the next.
_NUMBER = 26
#: The least that a text counts for, and the characters of JSON that a byte may become.
_TEXT, _ESCAPED = 8, 6


def result_bytes(array: NDArray[Any], most: int, *, as_text: bool, padded: bool = False, real: bool = False) -> int:
    """Return an upper estimate of the bytes that an output takes in results; if that exceeds `most`, perhaps only some number above `most`.

    Args:
        array: the output, as the tensor holds it.
        most: the most bytes that matter.
        as_text: whether it is written as text (JSON or CSV), not as an array.
        padded: whether strings in an array are padded to the longest.
        real: whether quantized integers may be written as real values.
    """
    if array.dtype.hasobject:
        least = array.size * _TEXT
        if least > most:
            return least
        lengths = map(len, array.reshape(-1).tolist())
        if padded and not as_text:
            return array.size * max(_TEXT, max(lengths, default=0))
        return least + sum(lengths) * _ESCAPED
    if as_text:
        return array.size * _NUMBER * (2 if array.dtype.kind == "c" else 1)
    if array.dtype.kind == "V":
        return array.size * 4
    return array.size * (max(array.itemsize, 8) if real and array.dtype.kind in "iu" else array.itemsize)


def check_result_bytes(
    outputs: Mapping[str, NDArray[Any]], most: int, *, as_text: bool, padded: bool = False, real: bool = False
) -> None:
    """Check that outputs would take no more than `most` bytes in results; see `result_bytes`.

    Raises:
        TensorError: they would take more.
    """
    total = 0
    for name, array in outputs.items():
        total += result_bytes(array, most, as_text=as_text, padded=padded, real=real)
        if total > most:
            raise TensorError(
                f"The outputs up to '{name}' of shape {list(array.shape)} would take up to {total} bytes in the results, and {OPTION} {most} "
                "allows no more; give a higher number."
            )
