"""The delegate's user options."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

__all__ = ["Settings"]

_NUMBERS = ("num_threads", "xnnpack", "min_nodes", "max_partitions")
#: What goes before the name of an option of the library's.
_OF_LIBRARY = "library."


class Settings(NamedTuple):
    """The delegate's options, parsed.

    Attributes:
        num_threads: threads of LiteRT; 0 for as many as oplet's interpreter has.
        xnnpack: 1 if LiteRT may use XNNPACK, 0 if not.
        min_nodes: partitions with fewer nodes stay with oplet's kernels.
        max_partitions: the most partitions to run in LiteRT, the largest first; 0 for all.
        library: a shared library with a delegate that LiteRT applies to each partition; "" for none.
        library_options: the options of that delegate, given as `library.NAME=value`.
    """

    num_threads: int = 0
    xnnpack: int = 1
    min_nodes: int = 1
    max_partitions: int = 0
    library: str = ""
    library_options: Mapping[str, str] = MappingProxyType({})

    @classmethod
    def read(cls, options: Mapping[str, str]) -> Settings:
        """Parse and check the options.

        Raises:
            ValueError: an option is unknown, or its value is invalid.
        """
        read: dict[str, Any] = {}
        library_options = {
            key[len(_OF_LIBRARY) :]: value for key, value in options.items() if key.startswith(_OF_LIBRARY) and key != _OF_LIBRARY
        }
        for key, value in options.items():
            if key == "library" and value:
                read[key] = value
            elif key in _NUMBERS and value.isdecimal():
                read[key] = int(value)
            elif key[len(_OF_LIBRARY) :] not in library_options:
                raise ValueError(
                    f"'{key}={value}' is none of its options: {', '.join(_NUMBERS)}, each with a number, and library=PATH with "
                    f"{_OF_LIBRARY}NAME=VALUE for what the library is told."
                )
        if library_options and "library" not in read:
            raise ValueError(
                f"'{_OF_LIBRARY}{next(iter(library_options))}' is for a library, and there is none; give library=PATH too."
            )
        if read.get("xnnpack", 1) > 1:
            raise ValueError(f"'xnnpack={read['xnnpack']}': it is 1, use XNNPACK, or 0, do not.")
        return cls(**read, library_options=library_options)
