"""Saturation from 16 connections, in its short form: every answer right, none a failure."""

from __future__ import annotations

import pytest
from plugins.serve.tests.load import saturate
from plugins.serve.tests.serving import DIGITS, served

pytestmark = pytest.mark.environment


@pytest.mark.parametrize("kind", ["json", "binary", "grpc"])
def test_every_answer_is_right(kind: str) -> None:
    model = DIGITS / "digits_int8.tflite"
    with served(model) as server:
        told = saturate(server, model.stem, model, 5, kind)
        assert server.end()[0] == 0
    assert told["answers"] > 200
    assert (told["wrong"], told["failed"]) == (0, 0)
