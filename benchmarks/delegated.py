"""Interpreters with a delegate, for graders that are told by a name what to run: `benchmarks.delegated:xla:device=gpu` is one."""

from __future__ import annotations

from functools import partial
from typing import Any

import oplet
from oplet_predictor.arguments import parse_delegate


def _interpreter(delegate: tuple[str, dict[str, str]], **arguments: Any) -> oplet.Interpreter:
    return oplet.Interpreter(experimental_delegates=[oplet.load_delegate(*delegate)], **arguments)


def __getattr__(text: str) -> Any:
    """What makes interpreters with the delegate that a text names, as `oplet run --delegate` takes it."""
    if text.startswith("__"):
        raise AttributeError(text)
    return partial(_interpreter, parse_delegate(text))
