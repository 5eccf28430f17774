"""What of the program's memory there is, for pointers that a library gives and that may be anything."""

from __future__ import annotations

import ctypes

__all__ = ["Mappings", "word"]


def word(address: int) -> int:
    """The pointer that lies at an address, 0 for a null pointer."""
    return ctypes.c_void_p.from_address(address).value or 0


class Mappings:
    """The memory that the program has now, and what it may do there."""

    def __init__(self) -> None:
        self._areas: list[tuple[int, int, str]] = []
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
            for line in file:
                span, rights = line.split(" ", 2)[:2]
                start, _, end = span.partition("-")
                self._areas.append((int(start, 16), int(end, 16), rights))

    def has(self, address: int, size: int, right: str) -> bool:
        """Whether there are so many bytes that may be read ("r"), written ("w") or executed ("x")."""
        return any(start <= address and address + size <= end and right in rights for start, end, rights in self._areas)
