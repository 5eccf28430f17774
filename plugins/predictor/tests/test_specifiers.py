"""Delegates as command lines and Predictors name them: a name, and options behind it."""

from __future__ import annotations

import pytest

from oplet.errors import DelegateError
from oplet_predictor.arguments import parse_delegate


@pytest.mark.parametrize(
    ("text", "name", "options"),
    [
        ("npu", "npu", {}),
        ("package:npu", "package:npu", {}),
        ("npu:a=1,b=", "npu", {"a": "1", "b": ""}),
        ("package:npu:path=C:\\x,url=http://h/?q=1", "package:npu", {"path": "C:\\x", "url": "http://h/?q=1"}),
        ('npu:cores="0,1",say=\'"hi"\'', "npu", {"cores": "0,1", "say": '"hi"'}),
    ],
)
def test_a_delegate_s_name_and_options(text: str, name: str, options: dict[str, str]) -> None:
    assert parse_delegate(text) == (name, options)


@pytest.mark.parametrize("text", ["npu:a=1,b", "npu=1", ":a=1", "npu:=1", 'npu:a="1'])
def test_a_malformed_delegate_is_refused(text: str) -> None:
    with pytest.raises(DelegateError, match="is not of the form NAME"):
        parse_delegate(text)


@pytest.mark.parametrize("text", ["", ":"])
def test_nothing_names_no_delegate(text: str) -> None:
    with pytest.raises(DelegateError, match="names no delegate; write NAME"):
        parse_delegate(text)
