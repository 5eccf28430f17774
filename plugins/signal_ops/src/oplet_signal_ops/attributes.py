"""Reading the FlexBuffers maps that the signal ops have as custom options."""

from __future__ import annotations

from typing import Any

from oplet import Tensor, TensorType, ensure

__all__ = ["ensure_declared_type", "flag", "integer"]

_LARGEST = 2**31 - 1


def integer(options: dict[str, Any], key: str, *, least: int = 0, most: int = _LARGEST) -> int:
    """The integer under `key`, which must not be below `least` nor above `most`."""
    value = options.get(key)
    whole = isinstance(value, int) and not isinstance(value, bool)
    ensure(
        whole and least <= options[key] <= most,
        f"the option '{key}' is {_shown(value)}; it must be an integer from {least} to {most}.",
    )
    return int(options[key])


def flag(options: dict[str, Any], key: str) -> bool:
    """The truth value under `key`, which may be written as an integer."""
    value = options.get(key)
    ensure(isinstance(value, int), f"the option '{key}' is {_shown(value)}; it must be true or false.")
    return bool(value)


def ensure_declared_type(options: dict[str, Any], tensor: Tensor, *types: TensorType) -> None:
    """Refuse the node unless the option 'T', by which tflite-micro picks its kernel, is the tensor's type and one of `types`."""
    wanted = {int(type): type.name for type in types}
    declared = integer(options, "T")
    ensure(declared in wanted, f"the option 'T' is {declared}; it must be one of {wanted}.")
    ensure(declared == tensor.type, f"the option 'T' is {declared} ({wanted[declared]}), but {tensor} is the input.")


def _shown(value: Any) -> str:
    return "missing" if value is None else f"{value!r:.60}"
