"""Limits of a server: size, number and duration of requests."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Bounds"]


@dataclass(frozen=True)
class Bounds:
    """The limits that the server enforces on requests.

    Attributes:
        max_request_bytes: bytes of a request's body over HTTP, also after it was decompressed, and of a message over gRPC.
        max_connections: connections over HTTP, beyond which requests get 503, and calls over gRPC at the same time.
        idle_seconds: seconds in which a connection's next request, with its headers, and a call's next message must have come; and in
            which something of a response must have been taken.
        read_seconds: seconds in which a request's body must have come.
        grace_seconds: seconds that requests under way get after SIGTERM or SIGINT.
    """

    max_request_bytes: int = 32 << 20
    max_connections: int = 256
    idle_seconds: float = 30.0
    read_seconds: float = 60.0
    grace_seconds: float = 30.0
