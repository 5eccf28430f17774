"""`oplet tune`: measures all installed ways of running a model (engines), on the user's values."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from oplet import Interpreter, Model, __version__
from oplet.toolkit import Preference, verify
from oplet_tools.running.inputs import load_inputs, notify_of_random
from oplet_tools.running.model_runner import ModelRunner
from oplet_tools.running.values.notices import NoticeCallback, warn
from oplet_tools.tuning.child.job import job_of
from oplet_tools.tuning.choice import Choice, choose, settings_in_key
from oplet_tools.tuning.trials import DEFAULT_BOUNDS, Bounds

if TYPE_CHECKING:
    from oplet import Delegate, PluginManager
    from oplet_tools.tuning.trials import Progress

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
    notify: NoticeCallback = warn,
) -> Choice:
    """Measure a model with every installed engine, and remember the fastest for `experimental_delegates="auto"`.

    Args:
        path: the .tflite file.
        inputs: "FILE" or "NAME=FILE" each, see `oplet_tools.running.inputs.load_inputs`; the rest is random. The first subgraph runs.
        plugins: the plugins whose kernels and delegates are measured.
        num_threads: threads that kernels may use.
        bounds: the largest error that the chosen engine may have, and the most seconds to measure.
        again: measure even if a choice is remembered.
        progress: called with the name of a step, and the fraction of it that is done, 0 to 1.
        raw: whether files hold a quantized tensor's integers; otherwise they hold real values, which are quantized.
        notify: called with a notice of each change to an input.

    Raises:
        OpletError: the model, a package or an input is wrong.
        OSError: a file cannot be read.
    """
    interpreter = partial(Interpreter, path, None, num_threads=num_threads, plugins=plugins)

    def open(prefer: Sequence[str], delegates: Sequence[Delegate]) -> Interpreter:
        return interpreter(experimental_delegates=delegates, prefer=prefer)

    model = Model.open(path)
    verify(model)
    given = {}
    if inputs:
        runner = ModelRunner(open((), ()))
        loaded = load_inputs(inputs, runner.inputs, raw=raw, notify=notify)
        notify_of_random(loaded, runner.inputs, notify)
        given = {runner.inputs[name]["index"]: value for name, (value, _) in loaded.items()}
    return choose(
        model,
        plugins,
        open,
        version=__version__,
        job=job_of(interpreter, plugins, Preference()),
        num_threads=num_threads,
        options=settings_in_key(interpreter.keywords, Preference()),
        bounds=bounds,
        inputs=given,
        again=again,
        progress=progress,
    )
