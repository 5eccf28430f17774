"""ensure refuses with the message that it is given, and does not ask for it when nothing is wrong."""

from __future__ import annotations

import pytest

from oplet import ensure
from oplet.ops.context import EnsureError


def test_a_message_may_be_a_function_that_is_asked_only_when_it_is_needed() -> None:
    asked = []

    def message() -> str:
        asked.append(True)
        return "the rule"

    ensure(True, message)
    assert not asked
    with pytest.raises(EnsureError, match="the rule"):
        ensure(False, message)
