"""Request errors with their HTTP status and a one-sentence message."""

from __future__ import annotations

import logging

from mlserver.errors import MLServerError

from oplet.errors import DeadlineError, LimitError, ModelError, OpletError, text_of
from oplet.texts import plain

__all__ = ["BAD", "BUSY", "CONFLICT", "LARGE", "LATE", "NO_MEMORY", "UNKNOWN", "Refusal", "check_count", "refusal_of"]

#: Statuses over HTTP.
BAD, UNKNOWN, LATE, CONFLICT, LARGE, BUSY = 400, 404, 408, 409, 413, 429


class Refusal(MLServerError):  # type: ignore[misc, unused-ignore]
    """Error response to a request.

    Args:
        message: one sentence that says why, and what to do.
        status: the HTTP status code.
    """

    def __init__(self, message: str, status: int = BAD) -> None:
        super().__init__(text_of(OpletError(message)), status)


#: The answer where memory could not be had for what a client sent.
NO_MEMORY = Refusal("The server has not the memory that this request takes; send it in parts.", LARGE)


def check_count(what: str, count: int, most: int) -> None:
    """Check that a request has no more inputs or outputs (`what` of them) than its model, before objects are made of them.

    Raises:
        Refusal: the request has more.
    """
    if count > most:
        raise Refusal(f"The request has {count} {what}, and the model has {most}; name each once.")


def refusal_of(error: OpletError, path: str = "", name: str = "") -> Refusal:
    """Convert an oplet error to an error response: 408 for a missed deadline, 413 for exceeded limits, 400 for others, in which the model's
    `name` stands for its `path`; and 500, with a line in the log, where its file is at fault.
    """
    if isinstance(error, ModelError):
        logging.getLogger("mlserver.oplet").error("%s", error)
        return Refusal(f"The file of the model '{name}' cannot be read, and the server's log says why.", 500)
    status = LATE if isinstance(error, DeadlineError) else LARGE if isinstance(error, LimitError) else BAD
    return Refusal(str(error).replace(plain(path) or "\n", name), status)
