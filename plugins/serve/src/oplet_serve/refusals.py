"""Refusals: errors of requests with their status over HTTP and gRPC, and one sentence each."""

from __future__ import annotations

import grpc
from mlserver.errors import MLServerError

from oplet.errors import DeadlineError, LimitError, OpletError, text_of

__all__ = ["BAD", "BUSY", "LARGE", "LATE", "Refusal", "grpc_status", "refusal_of"]

#: Statuses over HTTP.
BAD, LATE, LARGE, BUSY = 400, 408, 413, 429

_GRPC = {
    BAD: grpc.StatusCode.INVALID_ARGUMENT,
    404: grpc.StatusCode.NOT_FOUND,
    LATE: grpc.StatusCode.DEADLINE_EXCEEDED,
    LARGE: grpc.StatusCode.RESOURCE_EXHAUSTED,
    422: grpc.StatusCode.FAILED_PRECONDITION,
    BUSY: grpc.StatusCode.RESOURCE_EXHAUSTED,
}


class Refusal(MLServerError):  # type: ignore[misc, unused-ignore]
    """A request that is not served.

    Args:
        message: one sentence that says why, and what to do.
        status: the status over HTTP.
    """

    def __init__(self, message: str, status: int = BAD) -> None:
        super().__init__(text_of(OpletError(message)), status)


def refusal_of(error: OpletError) -> Refusal:
    """An error of oplet as a refusal: 408 where time ran out, 413 for what is too large, 400 for everything else."""
    status = LATE if isinstance(error, DeadlineError) else LARGE if isinstance(error, LimitError) else BAD
    return Refusal(str(error), status)


def grpc_status(error: MLServerError) -> grpc.StatusCode:
    """The gRPC status of an error of MLServer's or of this package's."""
    return _GRPC.get(error.status_code, grpc.StatusCode.INTERNAL)
