"""Signatures: what may be run of a model, by index or key, with the names of inputs and outputs in the graph's order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from oplet.errors import SignatureError, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oplet import Interpreter

__all__ = ["PLACEHOLDER", "Signature", "signatures_of"]

#: LiteRT's key for a model without signatures.
PLACEHOLDER = "<placeholder signature>"


class Signature(NamedTuple):
    """A signature of a model: a subgraph with named inputs and outputs.

    Attributes:
        key: the signature's key.
        subgraph: the index of its subgraph.
        inputs: the names of its inputs.
        outputs: the names of its outputs.
        input_tensors: the tensor index of each input.
        output_tensors: the tensor index of each output.
        fault: why the signature cannot be run; "" if it can.
    """

    key: str
    subgraph: int
    inputs: list[str]
    outputs: list[str]
    input_tensors: list[int]
    output_tensors: list[int]
    fault: str = ""


def signatures_of(interpreter: Interpreter) -> list[Signature]:
    """Return the model's signatures in order; for a model without any, one of its first subgraph, with the tensors' names."""
    keys = list(interpreter.get_signature_list())
    if not keys:
        subgraph = interpreter.subgraphs[0]
        inputs, outputs = list(subgraph.inputs), list(subgraph.outputs)
        names = [tensor.name for tensor in subgraph.tensors]
        return [Signature(PLACEHOLDER, 0, [names[i] for i in inputs], [names[i] for i in outputs], inputs, outputs)]
    return [_signature(interpreter, key) for key in keys]


def _signature(interpreter: Interpreter, key: str) -> Signature:
    runner = interpreter.get_signature_runner(key)
    subgraph = interpreter.subgraphs[runner.subgraph_index]
    try:
        runner.ensure_usable()
    except SignatureError as error:
        names = interpreter.get_signature_list()[key]
        return Signature(key, subgraph.index, names["inputs"], names["outputs"], [], [], text_of(error))
    inputs = _in_order(runner.get_input_details(), subgraph.inputs)
    outputs = _in_order(runner.get_output_details(), subgraph.outputs)
    (input_names, input_tensors), (output_names, output_tensors) = inputs, outputs
    return Signature(key, subgraph.index, input_names, output_names, input_tensors, output_tensors)


def _in_order(details: Mapping[str, Mapping[str, Any]], order: list[int]) -> tuple[list[str], list[int]]:
    """Return names and tensor indices in the order in which a subgraph has the tensors; others come last."""
    places = {index: place for place, index in reversed(list(enumerate(order)))}
    named = ((name, its["index"]) for name, its in details.items())
    found = sorted(named, key=lambda entry: places.get(entry[1], len(places)))
    return [name for name, _ in found], [index for _, index in found]
