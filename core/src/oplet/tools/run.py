"""Run a model once, on files or on random values."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oplet.errors import DelegateError
from oplet.runtime.explain import CLAIMED, NodeReport
from oplet.runtime.interpreter import Interpreter
from oplet.tools.inputs import load_inputs, random_input

if TYPE_CHECKING:
    from oplet.delegates.delegate import Delegate
    from oplet.plugins.manager import PluginManager

__all__ = ["RunResult", "Value", "delegate_named", "run_model"]

Details = dict[str, Any]


@dataclass(frozen=True)
class Value:
    """An input's or output's value.

    Attributes:
        name: the signature's name for it, or the tensor's.
        array: the value.
        details: its dictionary of `Interpreter.get_input_details` or `get_output_details`.
        source: the file that it came from, "random", or "" for outputs.
    """

    name: str
    array: NDArray[Any]
    details: Details
    source: str = ""


@dataclass(frozen=True)
class RunResult:
    """What a run gave.

    Attributes:
        signature: the key of the signature that was run, "" for the first subgraph.
        inputs: the inputs, in order.
        outputs: the outputs, in order.
        providers: how many nodes each package's kernels ran, by "name version".
    """

    signature: str
    inputs: list[Value]
    outputs: list[Value]
    providers: dict[str, int]


def run_model(
    model: str | os.PathLike[str],
    inputs: Sequence[str] = (),
    *,
    signature: str | None = None,
    scale: float | None = None,
    offset: float | None = None,
    seed: int = 0,
    num_threads: int = 1,
    plugins: PluginManager | None = None,
    delegates: Sequence[Delegate] = (),
) -> RunResult:
    """Run a model once.

    Args:
        model: the .tflite file.
        inputs: "FILE" or "NAME=FILE" each, see `oplet.tools.inputs.load_inputs`; the rest is random.
        signature: which signature to run; the only one if None, or else the first subgraph.
        scale: of pixels, see `oplet.tools.pictures.load_picture`.
        offset: of pixels.
        seed: of the random values.
        num_threads: threads that kernels may use.
        plugins: where the kernels come from; all that are installed by default.
        delegates: what claims nodes first, in this order.

    Raises:
        OpletError: the model, a package or an input is wrong.
        OSError: a file cannot be read.
    """
    interpreter = Interpreter(model_path=model, num_threads=num_threads, plugins=plugins, experimental_delegates=delegates)
    keys = list(interpreter.get_signature_list())
    if signature is None and len(keys) == 1:
        [signature] = keys
    runner = None if signature is None else interpreter.get_signature_runner(signature)
    if runner is None:
        sources, results = _by_name(interpreter.get_input_details()), _by_name(interpreter.get_output_details())
    else:
        sources = _in_order(runner.get_input_details(), interpreter.get_input_details())
        results = _in_order(runner.get_output_details(), interpreter.get_output_details())

    given = load_inputs(inputs, sources, scale=scale, offset=offset)
    random = np.random.default_rng(seed)
    values = {name: given[name] if name in given else (random_input(d, random), "random") for name, d in sources.items()}
    arrays = {name: array for name, (array, _) in values.items()}
    outputs = runner(**arrays) if runner is not None else _run_first(interpreter, sources, results, arrays)
    # Asked for again: the shapes of dynamic outputs are known only now.
    after = runner.get_output_details() if runner is not None else _by_name(interpreter.get_output_details())
    return RunResult(
        signature=signature or "",
        inputs=[Value(name, array, sources[name], source) for name, (array, source) in values.items()],
        outputs=[Value(name, outputs[name], after[name]) for name in results],
        providers=_providers(interpreter),
    )


def delegate_named(text: str, plugins: PluginManager) -> Delegate:
    """The delegate that a command line asks for.

    Args:
        text: "NAME" or "NAME:key=value,key=value".
        plugins: where it comes from.

    Raises:
        DelegateError: nobody brings it, it refuses its options, or an option has no value.
    """
    name, colon, rest = text.partition("=")
    name, _, key = name.rpartition(":") if colon else (name, "", "")
    options = {}
    for option in (key + colon + rest).split(",") if colon else ():
        key, equals, value = option.partition("=")
        if not name or not key or not equals:
            raise DelegateError(f"'{text}' is not of the form NAME[:key=value,...]; '{option}' is no option.")
        options[key] = value
    return plugins.registry().find(name).create(options)


def _run_first(
    interpreter: Interpreter,
    sources: Mapping[str, Details],
    results: Mapping[str, Details],
    values: Mapping[str, NDArray[Any]],
) -> dict[str, NDArray[Any]]:
    for name, details in sources.items():
        if tuple(details["shape"]) != values[name].shape:
            interpreter.resize_tensor_input(details["index"], values[name].shape, strict=True)
    interpreter.allocate_tensors()
    for name, details in sources.items():
        interpreter.set_tensor(details["index"], values[name])
    interpreter.invoke()
    return {name: interpreter.get_tensor(details["index"]) for name, details in results.items()}


def _by_name(details: Sequence[Details]) -> dict[str, Details]:
    """Details by tensor name; a tensor without a name of its own is called after its index."""
    counts = Counter(entry["name"] for entry in details)
    return {
        entry["name"] if entry["name"] and counts[entry["name"]] == 1 else f"tensor_{entry['index']}": entry for entry in details
    }


def _in_order(named: Mapping[str, Details], model: Sequence[Details]) -> dict[str, Details]:
    """A signature's details in the order of the model's own, where the signature has its names sorted."""
    position = {entry["index"]: place for place, entry in enumerate(model)}
    return dict(sorted(named.items(), key=lambda item: position.get(item[1]["index"], len(model))))


def _providers(interpreter: Interpreter) -> dict[str, int]:
    return dict(Counter(map(_origin, interpreter.explain())).most_common())


def _origin(report: NodeReport) -> str:
    if report.why == CLAIMED:
        return f"the delegate {report.op}"
    return f"{report.distribution} {report.distribution_version}" if report.distribution else report.plugin
