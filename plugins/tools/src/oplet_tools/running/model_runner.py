"""Runner of a model's signature, or of its first subgraph, with arrays by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oplet import Interpreter
from oplet.schema.enums import TensorType
from oplet_tools.running.values.picture_rules import picture_rules_of
from oplet_tools.tuning.random_inputs import random_input

if TYPE_CHECKING:
    from oplet.toolkit import Subgraph

__all__ = ["Details", "ModelRunner", "add_value_rules"]

#: Value ranges of integer types that numpy holds in wider ones.
_LIMITS = {TensorType.INT4: (-8, 7), TensorType.UINT4: (0, 15), TensorType.INT2: (-2, 1)}

Details = dict[str, Any]
Array = NDArray[Any]


class ModelRunner:
    """A callable that runs a signature of an interpreter, or the first subgraph under its tensors' names.

    Attributes:
        signature: the key of the signature, "" for the first subgraph.
        inputs: details of each input, by name, in the model's order. They have two more entries: "limits", the range of integers of 2 and 4
            bits, and "picture_rules", a function that returns the size, colours and normalization of pictures by the model's metadata.
        outputs: details of each output, by name; after a call with the shapes of its results.
        interpreter: the interpreter.

    Args:
        signature: the key of the signature; if None, the only signature, or the first subgraph if there are several or none.

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
        self.subgraph_index = 0 if self._runner is None else self._runner.subgraph_index
        subgraph = interpreter.subgraphs[self.subgraph_index]
        for details in self.inputs.values():
            add_value_rules(details, interpreter, subgraph)

    @property
    def outputs(self) -> dict[str, Details]:
        if self._runner is None:
            return _by_name(self.interpreter.get_output_details())
        return _in_order(self._runner.get_output_details(), self.interpreter.get_output_details())

    def complete(self, given: Mapping[str, tuple[Array, str]], seed: int) -> dict[str, tuple[Array, str]]:
        """Return a value for every input with its source: the given ones, and random values with the source "random"."""
        if given.keys() >= self.inputs.keys():  # importing numpy.random is slow
            return {name: given[name] for name in self.inputs}
        random = np.random.default_rng(seed)
        return {n: given[n] if n in given else (random_input(details, random), "random") for n, details in self.inputs.items()}

    def __call__(self, values: Mapping[str, Array]) -> dict[str, Array]:
        """Run on one value for each input; inputs are resized to the values' shapes. Variables keep their values between calls."""
        outputs = self._runner(**values) if self._runner is not None else self._run_first(values)
        return {name: outputs[name] for name in self.outputs}

    def _run_first(self, values: Mapping[str, Array]) -> dict[str, Array]:
        interpreter = self.interpreter
        for name, details in self.inputs.items():
            if interpreter.subgraphs[0].tensors[details["index"]].shape != values[name].shape:
                interpreter.resize_tensor_input(details["index"], values[name].shape, strict=True)
        interpreter.allocate_tensors()
        for name, details in self.inputs.items():
            interpreter.set_tensor(details["index"], values[name])
        interpreter.invoke()
        return {name: interpreter.get_tensor(details["index"]) for name, details in self.outputs.items()}


def add_value_rules(details: Details, interpreter: Interpreter, subgraph: Subgraph) -> None:
    """Add the entries "limits" and "picture_rules" to an input's details, see `ModelRunner.inputs`."""
    if (limits := _LIMITS.get(subgraph.tensors[details["index"]].type)) is not None:
        details["limits"] = limits
    if details["index"] in subgraph.inputs:
        position = subgraph.inputs.index(details["index"])
        details["picture_rules"] = partial(picture_rules_of, interpreter.model, subgraph.index, position)


def _by_name(details: Sequence[Details]) -> dict[str, Details]:
    """Return details by tensor name; a tensor whose name is empty or not unique is called "tensor_INDEX"."""
    counts = Counter(entry["name"] for entry in details)
    return {
        entry["name"] if entry["name"] and counts[entry["name"]] == 1 else f"tensor_{entry['index']}": entry for entry in details
    }


def _in_order(named: Mapping[str, Details], model: Sequence[Details]) -> dict[str, Details]:
    """Sort a signature's details, which are in the order of names, by the order of the model's tensors."""
    position = {entry["index"]: place for place, entry in enumerate(model)}
    return dict(sorted(named.items(), key=lambda item: position.get(item[1]["index"], len(model))))
