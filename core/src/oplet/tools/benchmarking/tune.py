"""Measure the ways of running a model, with values of the user's."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from oplet import __version__
from oplet.model.model import Model
from oplet.model.verify.verifier import verify
from oplet.runtime.interpreter import Interpreter
from oplet.tools.running.inputs import load_inputs
from oplet.tools.running.named_model import NamedModel
from oplet.tools.running.values.notices import Tell, warn
from oplet.tuning.choice import Choice, choose
from oplet.tuning.trials import DEFAULT_BOUNDS, Bounds

if TYPE_CHECKING:
    from oplet.delegates.delegate import Delegate
    from oplet.plugins.manager import PluginManager
    from oplet.tuning.trials import Progress

__all__ = ["tune_model"]


def tune_model(
    path: str | os.PathLike[str],
    inputs: Sequence[str] = (),
    *,
    plugins: PluginManager,
    num_threads: int = 1,
    bounds: Bounds = DEFAULT_BOUNDS,
    again: bool = True,
    progress: Progress | None = None,
    raw: bool = False,
    notify: Tell = warn,
) -> Choice:
    """Measure a model in every way that is installed, and remember the fastest for `experimental_delegates="auto"`.

    Args:
        path: the .tflite file.
        inputs: "FILE" or "NAME=FILE" each, see `oplet.tools.running.inputs.load_inputs`; the rest is random. The first subgraph runs.
        plugins: the plugins that there are.
        num_threads: threads that kernels may use.
        bounds: what measuring keeps to.
        again: measure, also if a choice is remembered.
        progress: is told what is being measured.
        raw: inputs hold a quantized tensor's integers, not real values.
        notify: is told what was done to inputs.

    Raises:
        OpletError: the model, a package or an input is wrong.
        OSError: a file cannot be read.
    """

    def open(prefer: Sequence[str], delegates: Sequence[Delegate]) -> Interpreter:
        return Interpreter(path, None, delegates, num_threads, plugins=plugins, prefer=prefer)

    model = Model.open(path)
    verify(model)
    given = {}
    if inputs:
        named = NamedModel(open((), ()))
        loaded = load_inputs(inputs, named.inputs, raw=raw, tell=notify)
        given = {named.inputs[name]["index"]: value for name, (value, _) in loaded.items()}
    return choose(
        model,
        plugins,
        open,
        version=__version__,
        num_threads=num_threads,
        bounds=bounds,
        inputs=given,
        again=again,
        progress=progress,
    )
