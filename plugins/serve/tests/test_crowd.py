"""Twenty hostile clients of every kind beside an honest one: its answers are right, the server lives, and its memory stays bounded."""

from __future__ import annotations

from pathlib import Path

import pytest
from plugins.serve.tests.crowd import CLIENTS, KINDS, run

#: MB. The server holds a few bodies of 33 MB at a time, each with what it takes until it is refused (four to sixteen times: docs/reliability.md);
#: what the C library keeps of that for the next ones stays with the process.
MOST = 3000


@pytest.mark.environment
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the server's memory is read from /proc")
def test_an_honest_client_is_answered_beside_twenty_hostile_ones(tmp_path: Path) -> None:
    told = run(tmp_path, 5.0)
    assert told.alive
    assert (told.wrong, told.answers > 0) == (0, True)
    assert set(told.sent) == set(KINDS)
    assert sum(told.sent.values()) >= CLIENTS
    assert max(told.peak, told.after) < MOST
