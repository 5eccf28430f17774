"""Operators and delegates in C and C++ for oplet: shared libraries that were made for LiteRT's public C API, as they are.

Example:
    >>> from oplet import Interpreter
    >>> from oplet_native_ops import load_ops
    >>> Interpreter("atan.tflite", op_resolver=load_ops("libatan.so"))  # doctest: +SKIP
"""

from __future__ import annotations

from oplet_native_ops.headers import cflags, include_dir
from oplet_native_ops.ops.loading import load_ops, register_library

__all__ = ["cflags", "include_dir", "load_ops", "register_library"]
