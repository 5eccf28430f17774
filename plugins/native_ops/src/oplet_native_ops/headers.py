"""Paths to the headers of LiteRT's public C API that this package ships."""

from __future__ import annotations

from pathlib import Path

__all__ = ["cflags", "include_dir"]


def include_dir() -> Path:
    """Return the folder for the compiler's `-I`, with `tflite/c/...`, `tflite/core/c/...` and `tensorflow/lite/...` below it."""
    return Path(__file__).with_name("include")


def cflags() -> list[str]:
    """Return the compiler options for a library of operators: `cc $(...) -o libatan.so atan.c`.

    Nothing is linked: the symbols of LiteRT's API that a library uses are bound when `load_ops` opens it.
    """
    return ["-fPIC", "-shared", f"-I{include_dir()}"]
