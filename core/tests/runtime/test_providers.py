"""The providers of an op are asked for once for all of its nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from oplet.errors import ResolverError
from oplet.runtime.execution.fallback import Chain


def test_a_chain_asks_for_each_provider_once_and_only_when_it_is_needed() -> None:
    asked: list[int] = []

    def ask() -> Iterator[Any]:
        for number in range(3):
            asked.append(number)
            yield number

    chain = Chain(ask)
    assert asked == []
    assert [chain.at(0), chain.at(0), chain.at(1)] == [0, 0, 1]
    assert asked == [0, 1]
    assert [chain.at(3), chain.at(2), chain.at(3)] == [None, 2, None]
    assert asked == [0, 1, 2]


def test_each_node_gets_the_error_of_a_provider_that_cannot_be_asked() -> None:
    def ask() -> Iterator[Any]:
        yield "first"
        raise ResolverError("the second cannot be imported.")

    chain = Chain(ask)
    for _ in range(2):
        assert chain.at(0) == "first"
        with pytest.raises(ResolverError, match="second"):
            chain.at(1)
