"""What the interpreter's arguments stand for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from oplet.errors import ModelError, StateError
from oplet.model.model import Model
from oplet.ops.tensor import Tensor

if TYPE_CHECKING:
    from oplet.plugins.manager import PluginManager

__all__ = ["check_strict", "manager_of", "open_model"]


def open_model(path: str | os.PathLike[str] | None, content: bytes | memoryview | None, use_mmap: bool = True) -> Model:
    if path and content:
        raise ModelError("Can't both provide `model_path` and `model_content`")
    if path:
        return Model.open(path, use_mmap=use_mmap)
    if content:
        return Model.from_bytes(content)
    raise ModelError("`model_path` or `model_content` must be specified.")


def manager_of(plugins: PluginManager | Sequence[str] | None) -> PluginManager:
    from oplet.plugins.manager import PluginManager, default_manager

    if plugins is None:
        return default_manager()
    return plugins if isinstance(plugins, PluginManager) else PluginManager.named(plugins, "plugins")


def check_strict(tensor: Tensor, shape: tuple[int, ...]) -> None:
    signature = tensor.shape_signature
    if len(shape) != len(signature):
        raise StateError(
            f"Attempting to resize {tensor} to the shape {list(shape)}, of another rank. ResizeInputTensorStrict only allows "
            "mutating unknown dimensions identified by -1."
        )
    for dimension, (now, wanted, free) in enumerate(zip(tensor.shape, shape, signature)):
        if free != -1 and now != wanted:
            raise StateError(
                f"Attempting to resize dimension {dimension} of tensor {tensor.index} with value {now} to {wanted}. "
                "ResizeInputTensorStrict only allows mutating unknown dimensions identified by -1."
            )
