"""A model to be called with arrays by name: one of its signatures, or its first subgraph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet.runtime.interpreter import Interpreter
from oplet.schema.enums import TensorType
from oplet.tools.running.values.normalization import normalization_of
from oplet.tuning.random_inputs import random_input

__all__ = ["Details", "ModelRunner"]

#: Types whose integers have fewer values than the bytes that numpy has for them.
_LIMITS = {TensorType.INT4: (-8, 7), TensorType.UINT4: (0, 15), TensorType.INT2: (-2, 1)}

Details = dict[str, Any]
Array = NDArray[Any]


class ModelRunner:
    """An interpreter's signature, or its first subgraph under its tensors' names.

    Attributes:
        signature: the key of the signature, "" for the first subgraph.
        inputs: each input's details, by name, in the model's order; with the "limits" of integers of 2 and 4 bits, and what tells the
            "normalization" of pixels.
        outputs: each output's details; after a call with the shapes that it gave.
        interpreter: the interpreter.

    Args:
        signature: which signature; the only one if None, or else the first subgraph.

    Raises:
        SignatureError: there is no such signature.
    """

    def __init__(self, interpreter: Interpreter, signature: str | None = None) -> None:
        keys = list(interpreter.get_signature_list())
        if signature is None and len(keys) == 1:
            [signature] = keys
        self.signature = signature or ""
        self.interpreter = interpreter
        self._runner = None if signature is None else interpreter.get_signature_runner(signature)
        if self._runner is None:
            self.inputs = _by_name(interpreter.get_input_details())
        else:
            self.inputs = _in_order(self._runner.get_input_details(), interpreter.get_input_details())
        subgraph = interpreter._subgraphs[interpreter._subgraph_of(signature) if signature else 0]
        for details in self.inputs.values():
            if (limits := _LIMITS.get(subgraph.tensors[details["index"]].type)) is not None:
                details["limits"] = limits
            if details["index"] in subgraph.inputs:
                position = subgraph.inputs.index(details["index"])
                details["normalization"] = partial(normalization_of, interpreter._model, subgraph.index, position)

    @property
    def outputs(self) -> dict[str, Details]:
        if self._runner is None:
            return _by_name(self.interpreter.get_output_details())
        return _in_order(self._runner.get_output_details(), self.interpreter.get_output_details())

    def complete(self, given: Mapping[str, tuple[Array, str]], seed: int) -> dict[str, tuple[Array, str]]:
        """A value for every input, and where it is from: what is given, "random" for the rest."""
        if given.keys() >= self.inputs.keys():  # importing numpy.random takes its time
            return {name: given[name] for name in self.inputs}
        random = np.random.default_rng(seed)
        return {n: given[n] if n in given else (random_input(details, random), "random") for n, details in self.inputs.items()}

    def __call__(self, values: Mapping[str, Array]) -> dict[str, Array]:
        """Run on one value per input; their shapes resize the inputs. Variables keep their values between calls."""
        outputs = self._runner(**values) if self._runner is not None else self._run_first(values)
        return {name: outputs[name] for name in self.outputs}

    def _run_first(self, values: Mapping[str, Array]) -> dict[str, Array]:
        interpreter = self.interpreter
        for name, details in self.inputs.items():
            if tuple(interpreter._get_tensor_details(details["index"], 0)["shape"]) != values[name].shape:
                interpreter.resize_tensor_input(details["index"], values[name].shape, strict=True)
        interpreter.allocate_tensors()
        for name, details in self.inputs.items():
            interpreter.set_tensor(details["index"], values[name])
        interpreter.invoke()
        return {name: interpreter.get_tensor(details["index"]) for name, details in self.outputs.items()}


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
