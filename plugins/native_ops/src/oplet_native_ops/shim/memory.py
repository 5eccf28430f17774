"""The process's memory map, to validate pointers from a library."""

from __future__ import annotations

import ctypes

__all__ = ["Mappings", "word"]


def word(address: int) -> int:
    """Return the pointer stored at a memory address; 0 for null."""
    return ctypes.c_void_p.from_address(address).value or 0


class Mappings:
    """The process's memory mappings and their permissions."""

    def __init__(self) -> None:
        self._areas: list[tuple[int, int, str]] = []
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
            for line in file:
                span, rights = line.split(" ", 2)[:2]
                start, _, end = span.partition("-")
                self._areas.append((int(start, 16), int(end, 16), rights))

    def has(self, address: int, size: int, right: str) -> bool:
        """Return whether the address range is mapped readable ("r"), writable ("w") or executable ("x")."""
        return any(start <= address and address + size <= end and right in rights for start, end, rights in self._areas)
