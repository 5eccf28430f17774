"""What the user may say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["Settings"]


class Settings(NamedTuple):
    """The options, read.

    Attributes:
        num_threads: of LiteRT; 0 stands for as many as the interpreter has.
        xnnpack: 1 if LiteRT may use XNNPACK, 0 if not.
        min_nodes: smaller partitions stay with oplet.
        max_partitions: at most so many are taken, the largest; 0 stands for all.
    """

    num_threads: int = 0
    xnnpack: int = 1
    min_nodes: int = 1
    max_partitions: int = 0

    @classmethod
    def read(cls, options: Mapping[str, str]) -> Settings:
        """Read them.

        Raises:
            ValueError: an option is none of these, or its value makes no sense.
        """
        read: dict[str, Any] = {}
        for key, value in options.items():
            if key not in cls._fields or not value.isdecimal():
                raise ValueError(f"'{key}={value}' is none of its options: {', '.join(cls._fields)}, each with a number.")
            read[key] = int(value)
        if read.get("xnnpack", 1) > 1:
            raise ValueError(f"'xnnpack={read['xnnpack']}': it is 1, use XNNPACK, or 0, do not.")
        return cls(**read)
