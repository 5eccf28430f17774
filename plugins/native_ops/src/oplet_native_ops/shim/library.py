"""This package's own C library: its path, and the signatures of its functions."""

from __future__ import annotations

import ctypes
import functools
import platform
import sys
from pathlib import Path

from oplet.errors import PluginError
from oplet_native_ops.shim.layouts import Address, IntArray, Node, Tensor

__all__ = ["library_path", "shim"]

#: As in `native/calls.c`.
_INTERFACE = 3

_INT, _SIZE, _TEXT = ctypes.c_int, ctypes.c_size_t, ctypes.c_char_p
_INTS = ctypes.POINTER(ctypes.c_int)
_ARRAY = ctypes.POINTER(IntArray)

#: What each function returns and takes.
_SIGNATURES: dict[str, tuple[object, ...]] = {
    "TfLiteIntArrayCreate": (_ARRAY, _INT),
    "TfLiteIntArrayFree": (None, _ARRAY),
    "TfLiteOpaqueDelegateGetData": (Address, Address),
    "TfLiteOperatorDelete": (None, Address),
    "TfLiteOperatorGetBuiltInCode": (_INT, Address),
    "TfLiteOperatorGetCustomName": (_TEXT, Address),
    "TfLiteOperatorGetVersion": (_INT, Address),
    "oplet_native_data": (None, Address, _INT, Address, _SIZE),
    "oplet_native_delegate_copy_from": (_INT, Address, Address, _INT, _INT),
    "oplet_native_delegate_copy_to": (_INT, Address, Address, _INT, _INT),
    "oplet_native_delegate_free": (_INT, Address, Address, _INT),
    "oplet_native_delegate_flags": (ctypes.c_int64, Address),
    "oplet_native_delegate_is_opaque": (_INT, Address),
    "oplet_native_delegate_prepare": (_INT, Address, Address),
    "oplet_native_describe": (_INT, Address, _INT, _INT, _TEXT, _INT, _INT, _INTS),
    "oplet_native_error": (_TEXT, Address),
    "oplet_native_free": (None, Address, Address, Address),
    "oplet_native_graph": (Address, _INT, _INT),
    "oplet_native_graph_free": (None, Address),
    "oplet_native_graph_node": (None, Address, _INT, Address, _INT, _TEXT, _INT),
    "oplet_native_graph_nodes": (_INT, Address, _INT, _ARRAY, _ARRAY, _ARRAY, _ARRAY, _TEXT),
    "oplet_native_handles": (_INT, Address, _INT, _INTS),
    "oplet_native_hooks": (Address, Address),
    "oplet_native_init": (Address, Address, Address, Address, _SIZE),
    "oplet_native_interface": (_INT,),
    "oplet_native_invoke": (_INT, Address),
    "oplet_native_is_operator": (_INT, Address),
    "oplet_native_kernel": (Address, Address, _INT),
    "oplet_native_kernel_free": (None, Address),
    "oplet_native_methods": (_INT, Address),
    "oplet_native_node": (ctypes.POINTER(Node), _INTS, _INT, _INTS, _INT, _INTS, _INT),
    "oplet_native_node_free": (None, ctypes.POINTER(Node)),
    "oplet_native_node_asked": (_INT, Address, _INT),
    "oplet_native_node_said": (_TEXT, Address, _INT),
    "oplet_native_phase": (None, Address, _INT),
    "oplet_native_prepare": (_INT, Address, Address, Address),
    "oplet_native_quantize": (_INT, Address, _INT, _INT, ctypes.POINTER(ctypes.c_float), _INT, _INTS, _INT),
    "oplet_native_resolver": (Address,),
    "oplet_native_resolver_count": (_INT, Address),
    "oplet_native_resolver_entry": (Address, Address, _INT, _INTS, _INTS, _INTS),
    "oplet_native_shape": (_INT, Address, _INT, _INT, _INT, _INTS, _SIZE),
    "oplet_native_tensor": (ctypes.POINTER(Tensor), Address, _INT),
    "oplet_native_tensor_count": (_INT, Address),
}


def library_path() -> Path:
    """Return the path of this package's C library, whether it exists or not."""
    return Path(__file__).parents[1] / "liboplet_native.so"


@functools.cache
def shim() -> ctypes.CDLL:
    """Load this package's C library and declare its functions for ctypes; calls release the GIL.

    Raises:
        PluginError: there is no library for this platform, or its version is not that of the Python code.
    """
    path = library_path()
    if not path.is_file():
        machine = f"{platform.system()} on {platform.machine()}"
        raise PluginError(
            f"oplet-native-ops runs compiled operators on 64-bit Linux alone, and this is {machine}."
            if sys.platform != "linux"
            else f"oplet-native-ops was installed on {machine} without its library; install it again, with a C compiler or ziglang."
        )
    library = ctypes.CDLL(str(path))
    if library.oplet_native_interface() != _INTERFACE:
        raise PluginError(
            "The library of oplet-native-ops is of another version than its Python modules; install the package again."
        )
    for name, (result, *arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
