"""Creation of a library's delegate, with sanity checks of its struct."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping

from oplet.errors import DelegateError
from oplet_native_ops.shim.layouts import Address
from oplet_native_ops.shim.library import shim
from oplet_native_ops.shim.memory import Mappings, word
from oplet_native_ops.shim.opening import NativeLibrary

__all__ = ["create_delegate", "destroy_delegate"]

_CREATE, _DESTROY = "tflite_plugin_create_delegate", "tflite_plugin_destroy_delegate"
_REPORT = ctypes.CFUNCTYPE(None, ctypes.c_char_p)
#: Bytes of a TfLiteDelegate whose last field is not there yet in libraries of TensorFlow before 2.11, and of an opaque one.
_STRUCT_BYTES, _BUILDER_BYTES, _BUILDER_AT = 48, 48, 48
_METHODS = ("Prepare", "CopyFromBufferHandle", "CopyToBufferHandle", "FreeBufferHandle")


def create_delegate(library: NativeLibrary, options: Mapping[str, str]) -> int:
    """Call `tflite_plugin_create_delegate`; return the delegate's address.

    Raises:
        DelegateError: the library has no such function, or it returns null or a pointer to something that is no delegate.
    """
    if _CREATE not in library.info.functions:
        raise DelegateError(
            f"{library.name} exports no {_CREATE}, so it is no delegate library; libraries of operators are for load_ops."
        )
    for text in (*options, *options.values()):
        if "\0" in text:
            raise DelegateError(f"The option {text!r} has a null character in it, where C would see its end.")
    create = getattr(library.functions, _CREATE)
    texts = ctypes.POINTER(ctypes.c_char_p)
    create.restype, create.argtypes = Address, [texts, texts, ctypes.c_size_t, _REPORT]
    said: list[str] = []
    keys, values = (
        (ctypes.c_char_p * len(options))(*(text.encode("utf-8", "surrogateescape") for text in group))
        for group in (options, options.values())
    )
    report = _REPORT(lambda text: said.append((text or b"").decode("utf-8", "replace").strip()))
    pointer = create(keys, values, len(options), report)
    if not pointer:
        reason = "; ".join(filter(None, said)) or "it does not say why"
        raise DelegateError(f"{library.name} makes no delegate with the options {dict(options)}: {reason}.")
    _check(int(pointer), library.name)
    return int(pointer)


def destroy_delegate(library: NativeLibrary, pointer: int) -> None:
    """Call `tflite_plugin_destroy_delegate`, if the library exports it."""
    if _DESTROY in library.info.functions:
        destroy = getattr(library.functions, _DESTROY)
        destroy.restype, destroy.argtypes = None, [Address]
        destroy(pointer)


def _check(pointer: int, name: str) -> None:
    mapped = Mappings()
    if not mapped.has(pointer, _STRUCT_BYTES, "r"):
        raise DelegateError(f"{name} makes a delegate at {pointer:#x}, where the program has no memory.")
    at, methods = pointer, _METHODS
    if not word(pointer + 8):  # no Prepare of its own: the opaque interface
        builder = word(pointer + _BUILDER_AT) if mapped.has(pointer + _BUILDER_AT, 8, "r") else 0
        if not builder:
            raise DelegateError(f"The delegate that {name} makes has no Prepare, so it cannot claim anything.")
        if not mapped.has(builder, _BUILDER_BYTES, "r"):
            raise DelegateError(
                f"The delegate that {name} makes has its functions at {builder:#x}, where the program has no memory."
            )
        at = builder
        if not word(builder + 8):
            raise DelegateError(f"The delegate that {name} makes has no Prepare, so it cannot claim anything.")
    for i, method in enumerate(methods):
        address = word(at + 8 + 8 * i)
        if address and not mapped.has(address, 1, "x"):
            raise DelegateError(f"What {name} makes is no delegate: its {method} is no function.")


def is_opaque(pointer: int) -> bool:
    """Return whether a delegate has the opaque interface (TfLiteOpaqueDelegate)."""
    return bool(shim().oplet_native_delegate_is_opaque(pointer))
