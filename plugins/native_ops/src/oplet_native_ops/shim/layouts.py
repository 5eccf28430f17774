"""ctypes structs of LiteRT's C API; `native/abi.h` defines all of them."""

from __future__ import annotations

import ctypes
from typing import ClassVar

__all__ = [
    "NO_BUFFER_HANDLE",
    "Address",
    "Call",
    "IntArray",
    "Memory",
    "NativeDelegateParams",
    "NativeOpaqueDelegateParams",
    "Node",
    "Registered",
    "Status",
    "Tensor",
    "array_values",
]

Address = ctypes.c_void_p


class Status:
    """Values of TfLiteStatus."""

    OK = 0
    OUTPUT_SHAPE_NOT_KNOWN = 9
    NAMES: ClassVar = {
        1: "kTfLiteError",
        2: "kTfLiteDelegateError",
        3: "kTfLiteApplicationError",
        4: "kTfLiteDelegateDataNotFound",
        5: "kTfLiteDelegateDataWriteError",
        6: "kTfLiteDelegateDataReadError",
        7: "kTfLiteUnresolvedOps",
        8: "kTfLiteCancelled",
        9: "kTfLiteOutputShapeNotKnown",
    }


class Memory:
    """Values of TfLiteAllocationType. C frees DYNAMIC and PERSISTENT_RO memory, so numpy memory is never marked as either."""

    NONE = 0
    MMAP_RO = 1
    ARENA_RW = 2
    ARENA_RW_PERSISTENT = 3
    DYNAMIC = 4
    PERSISTENT_RO = 5
    CUSTOM = 6
    NON_CPU = 8


#: What `buffer_handle` is where there is none.
NO_BUFFER_HANDLE = -1


class IntArray(ctypes.Structure):
    """The head of the C struct TfLiteIntArray; the values follow it in memory."""

    _fields_ = [("size", ctypes.c_int)]


class Tensor(ctypes.Structure):
    """The C struct TfLiteTensor."""

    _fields_ = [
        ("type", ctypes.c_int),
        ("data", Address),
        ("dims", ctypes.POINTER(IntArray)),
        ("scale", ctypes.c_float),
        ("zero_point", ctypes.c_int),
        ("allocation_type", ctypes.c_int),
        ("bytes", ctypes.c_size_t),
        ("allocation", Address),
        ("name", ctypes.c_char_p),
        ("delegate", Address),
        ("buffer_handle", ctypes.c_int),
        ("data_is_stale", ctypes.c_bool),
        ("is_variable", ctypes.c_bool),
        ("quantization_type", ctypes.c_int),
        ("quantization", Address),
        ("sparsity", Address),
        ("dims_signature", ctypes.POINTER(IntArray)),
    ]


class Node(ctypes.Structure):
    """The C struct TfLiteNode."""

    _fields_ = [
        ("inputs", ctypes.POINTER(IntArray)),
        ("outputs", ctypes.POINTER(IntArray)),
        ("intermediates", ctypes.POINTER(IntArray)),
        ("temporaries", ctypes.POINTER(IntArray)),
        ("user_data", Address),
        ("builtin_data", Address),
        ("custom_initial_data", Address),
        ("custom_initial_data_size", ctypes.c_int),
        ("delegate", Address),
        ("might_have_side_effect", ctypes.c_bool),
    ]


class Registered(ctypes.Structure):
    """The C struct TfLiteRegistration."""

    _fields_ = [
        ("init", Address),
        ("free", Address),
        ("prepare", Address),
        ("invoke", Address),
        ("profiling_string", Address),
        ("builtin_code", ctypes.c_int),
        ("custom_name", Address),
        ("version", ctypes.c_int),
        ("registration_external", Address),
        ("async_kernel", Address),
        ("inplace_operator", ctypes.c_uint64),
    ]


class NativeDelegateParams(ctypes.Structure):
    """The C struct TfLiteDelegateParams: one partition, for the `init` of its kernel."""

    _fields_ = [
        ("delegate", Address),
        ("nodes", ctypes.POINTER(IntArray)),
        ("inputs", ctypes.POINTER(IntArray)),
        ("outputs", ctypes.POINTER(IntArray)),
    ]


class NativeOpaqueDelegateParams(ctypes.Structure):
    """The C struct TfLiteOpaqueDelegateParams: one partition, for the `init` of an opaque delegate's kernel."""

    _fields_ = [
        ("delegate", Address),
        ("data", Address),
        ("nodes", ctypes.POINTER(IntArray)),
        ("inputs", ctypes.POINTER(IntArray)),
        ("outputs", ctypes.POINTER(IntArray)),
    ]


class Call(ctypes.Structure):
    """Arguments of one node invocation; see `native/calls.c`."""

    _fields_ = [
        ("kernel", Address),
        ("graph", Address),
        ("node", Address),
        ("fixed_count", ctypes.c_int),
        ("fixed", ctypes.POINTER(ctypes.c_int)),
        ("addresses", ctypes.POINTER(Address)),
    ]


def array_values(array: object) -> list[int]:
    """Return the values of a TfLiteIntArray pointer; empty for a null pointer."""
    if not array:
        return []
    contents: IntArray = array.contents  # type: ignore[attr-defined]
    return list((ctypes.c_int * contents.size).from_address(ctypes.addressof(contents) + ctypes.sizeof(ctypes.c_int)))
