"""Check of the tensor type that signal ops declare in their custom options."""

from __future__ import annotations

from typing import Any

from oplet import Tensor, TensorType, ensure
from oplet.kernels.options import integer

__all__ = ["ensure_declared_type"]


def ensure_declared_type(options: dict[str, Any], tensor: Tensor, *types: TensorType) -> None:
    """Raise an error unless option 'T', by which tflite-micro selects its kernel, is the tensor's type and one of `types`.

    Args:
        options: the node's custom options.
        tensor: the tensor that must have the declared type.
        types: the types that the op supports.
    """
    wanted = {int(type): type.name for type in types}
    declared = integer(options, "T")
    ensure(declared in wanted, f"the option 'T' is {declared}; it must be one of {wanted}.")
    ensure(declared == tensor.type, f"the option 'T' is {declared} ({wanted[declared]}), but {tensor} is the input.")
