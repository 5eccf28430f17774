"""Arguments of LiteRT's constructor: the names of kernel sets, and the checks of types that it makes."""

from __future__ import annotations

from enum import Enum

from oplet.errors import TensorError

__all__ = ["OpResolverType", "check_types"]


class OpResolverType(Enum):
    """LiteRT's names of kernel sets. oplet has one set of kernels, which each of these names stands for."""

    AUTO = 0
    BUILTIN = 1
    BUILTIN_REF = 2
    BUILTIN_WITHOUT_DEFAULT_DELEGATES = 3


def check_types(op_resolver_type: object, num_threads: object) -> None:
    """Check the types of arguments as LiteRT does.

    Raises:
        TensorError: one is wrong, in LiteRT's words.
    """
    if not isinstance(op_resolver_type, Enum) or op_resolver_type.name not in OpResolverType.__members__:
        raise TensorError(f"Unrecognized passed in op resolver type: {op_resolver_type}")
    if num_threads is not None:
        if not isinstance(num_threads, int):
            raise TensorError("type of num_threads should be int")
        if num_threads < 1:
            raise TensorError("num_threads should >= 1")
