"""The headers of LiteRT's public C API that this package ships, for compilers."""

from __future__ import annotations

from pathlib import Path

__all__ = ["cflags", "include_dir"]


def include_dir() -> Path:
    """The folder for `-I`: `tflite/c/...`, `tflite/core/c/...` and `tensorflow/lite/...` are below it."""
    return Path(__file__).with_name("include")


def cflags() -> list[str]:
    """The options with which a library of operators is compiled: `cc $(...) -o libatan.so atan.c`.

    Nothing is linked: what a library calls of the API is bound when `load_ops` opens it.
    """
    return ["-fPIC", "-shared", f"-I{include_dir()}"]
