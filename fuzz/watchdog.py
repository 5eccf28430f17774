"""A watchdog thread that cancels runs after a timeout, as a program with the default limits would."""

from __future__ import annotations

import threading
import time
from typing import Any

__all__ = ["TIMEOUT", "Watchdog"]

#: Seconds after which a run is cancelled.
TIMEOUT = 2.0


class Watchdog:
    """Calls `cancel` of the running interpreter repeatedly, once its time is over."""

    def __init__(self) -> None:
        self._runner: Any = None
        self._since = 0.0
        threading.Thread(target=self._watch, daemon=True).start()

    def begin(self, runner: Any) -> None:
        """Start the timeout of an interpreter's run."""
        self._since = time.monotonic()
        self._runner = runner

    def end(self) -> None:
        """Stop the timeout: the run is over."""
        self._runner = None

    def _watch(self) -> None:
        while True:
            time.sleep(0.25)
            runner = self._runner
            if runner is not None and time.monotonic() - self._since > TIMEOUT:
                runner.cancel()
