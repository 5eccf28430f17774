"""Whether the kernels that a build takes in place of costlier ones take the nodes of its models."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing

from oplet.errors import OpletError
from oplet.model.model import Model
from oplet.ops.serving.resolver import OpResolver
from oplet.runtime.interpreter import Interpreter
from oplet.tools.building.distributions import Origin
from oplet.tools.building.providers import Choice

__all__ = ["indispensable_providers"]


def indispensable_providers(
    models: Sequence[Model], choice: Choice, again: Callable[[Iterable[Origin]], Choice], installed: OpResolver
) -> set[Origin]:
    """The providers that were passed over for what they require, and without which a model cannot be prepared.

    Args:
        models: what the build is made for.
        choice: who was chosen.
        again: chooses anew, with some of those that were passed over.
        installed: what all plugins bring: what a model cannot do with these, nobody need do.
    """
    spared = {each.origin for each in choice.passed if each.preferable}
    if not spared:
        return set()
    refused = [m for m in models if not _prepares(m, choice.resolver()) and _prepares(m, installed)]
    needed = set(spared) if refused else set()
    for origin in sorted(needed):
        fewer = again(needed - {origin}).resolver()
        if all(_prepares(model, fewer) for model in refused):
            needed.discard(origin)
    return needed


def _prepares(model: Model, resolver: OpResolver) -> bool:
    content = None if model.path else model.data if len(model.data) else model.to_bytes()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with closing(Interpreter(model.path or None, content, op_resolver=resolver, plugins=[])) as interpreter:
                interpreter.allocate_tensors()
    except OpletError:
        return False
    return True
