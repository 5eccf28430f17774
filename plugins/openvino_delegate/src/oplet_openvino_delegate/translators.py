"""The registry of translators (of operators to OpenVINO's graph) by operator name, and the checks that every node must pass
before."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, NamedTuple

from oplet import BuiltinOperator, Node, Tensor, TensorType
from oplet_openvino_delegate import ops
from oplet_openvino_delegate.graph import QUANTIZED, GraphBuilder, quantized

__all__ = [
    "FLOAT", "MOVED", "Translate", "Translator", "axes_of", "integers", "refusal", "refuses_rescaling", "translates", "translator",
]  # fmt: skip

FLOAT = (TensorType.FLOAT32,)
#: What operators that only move values take.
MOVED = (TensorType.FLOAT32, TensorType.INT32, TensorType.BOOL)
#: OpenVINO's CPU kernels are written for at most so many dimensions.
_MAX_RANK = 6

#: Adds the OpenVINO nodes that compute a node to the graph.
Translate = Callable[[GraphBuilder, Node], None]


def _nothing(node: Node) -> str:
    return ""


class Translator(NamedTuple):
    """The translation of one operator: limits, a check, and the function that adds nodes to an OpenVINO graph."""

    translate: Translate  #: Adds the OpenVINO nodes that compute a node to the graph.
    newest: int = 1  #: The newest version of the operator that is translated.
    refuses: Callable[[Node], str] = _nothing  #: Returns why the delegate leaves a node to other kernels; "" if it translates it.
    inputs: tuple[int, int] = (1, 1)  #: The least and the most number of inputs.
    outputs: int | None = 1  #: The number of outputs; None for any number.
    types: Collection[TensorType] = FLOAT  #: The allowed types of inputs and outputs, except for the inputs at `constants`.
    #: Positions of parameter inputs, such as axes or shapes, which must be constant and may have other types.
    constants: tuple[int, ...] = ()
    optional: tuple[int, ...] = ()  #: Positions of inputs that may be left out.
    needs: tuple[int, ...] = ()  #: Positions of other inputs that must be constant, such as weights, and have one of `types`.
    custom: bool = False  #: Whether it is a custom operator.
    layer_of_8_bits: bool = False  #: Whether quantized nodes are translated, too, if the user sets the option `quantized`.
    bias: int | None = None  #: The position of the bias, which is int32 in quantized layers; None if the operator has none.


_KNOWN: dict[str, Translator] = {}


def translates(*names: str, **attributes: Any) -> Callable[[Translate], Translate]:
    """Register the decorated function as the translation of operators.

    Args:
        names: the operators' names.
        attributes: attributes of `Translator`.
    """

    def register(translate: Translate) -> Translate:
        for name in names:
            _KNOWN[name] = Translator(translate, **attributes)
        return translate

    return register


def translator(op_name: str) -> Translator | None:
    """Return the translator of an operator; None if there is none."""
    if not _KNOWN:
        for module in iter_modules(ops.__path__):
            import_module(f"{ops.__name__}.{module.name}")
    return _KNOWN.get(op_name)


def refuses_rescaling(node: Node, inputs: Sequence[Tensor] | None = None) -> str:
    """Return why an operator cannot just move values: an output has another type or quantization than an input; "" if it can.

    Args:
        inputs: the inputs whose values are moved; None for the first one only.
    """
    for tensor in inputs if inputs is not None else node.inputs[:1]:
        for out in node.outputs:
            if tensor.type is not out.type:
                return f"it is to make {out} of {tensor}"
            if tensor.type in QUANTIZED and (tensor.scale, tensor.zero_point) != (out.scale, out.zero_point):
                return f"{tensor} and {out} have different scales"
    return ""


def integers(tensor: Tensor) -> list[int]:
    """Return the values of a constant integer tensor, such as axes, as a list."""
    values: list[int] = tensor.data.ravel().tolist()
    return values


def axes_of(axes: Sequence[int], rank: int) -> list[int] | None:
    """Return the axes with negative ones counted from the end; None if one is out of range."""
    return [axis % rank for axis in axes] if all(-rank <= axis < rank for axis in axes) else None


def refusal(node: Node, *, layers_of_8_bits: bool = False) -> str:
    """Return why the delegate leaves a node to other kernels; "" if translation can be tried.

    Args:
        layers_of_8_bits: whether quantized layers are translated, too.
    """
    found = translator(node.op_name)
    if found is None or found.custom is not (node.op is BuiltinOperator.CUSTOM):
        return f"{node.op_name} is none of the operators that are translated"
    if node.version > found.newest:
        return f"{node.op_name} is of version {node.version}, it knows up to {found.newest}"
    if not found.inputs[0] <= len(node.inputs) <= found.inputs[1]:
        return f"it has {len(node.inputs)} inputs, not {found.inputs[0]} to {found.inputs[1]}"
    if not node.outputs or found.outputs not in (None, len(node.outputs)):
        return f"it has {len(node.outputs)} outputs, not {found.outputs}"
    in_8_bits = found.types in (FLOAT, MOVED) and any(tensor.type in QUANTIZED for tensor in node.outputs)
    if in_8_bits and not layers_of_8_bits:
        return "it is quantized: OpenVINO may be a step off, and steps add up; the option quantized=1 takes it"
    if in_8_bits and not found.layer_of_8_bits:
        return f"it is quantized, and {node.op_name} is translated for real numbers only"
    types = QUANTIZED if in_8_bits else found.types
    for position, tensor in enumerate(node.inputs):
        if tensor is None:
            if position not in found.optional:
                return f"its input {position} is left out"
            continue
        if position in (*found.constants, *found.needs) and not tensor.is_constant:
            return f"its input {position}, {tensor}, is not constant"
        wanted = None if position in found.constants else types
        if in_8_bits and position == found.bias and tensor.is_constant:
            wanted = (TensorType.INT32,)
        reason = _unfit(tensor, wanted)
        if reason:
            return reason
    for tensor in node.outputs:
        reason = _unfit(tensor, types)
        if reason:
            return reason
    try:
        return found.refuses(node)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # a shape that the translation was not written for
        return f"it is not as {node.op_name} is wont to be: {type(error).__name__}: {error}"


def _unfit(tensor: Tensor, types: Collection[TensorType] | None) -> str:
    if tensor.is_variable:
        return f"{tensor} is a variable, which stays with the runtime"
    if tensor.sparsity is not None:
        return f"{tensor} is stored sparse, and no translation reads what is stored"
    if types is None:
        return ""
    if tensor.type not in types:
        return f"it works on {', '.join(sorted(t.name for t in types))}, not on {tensor}"
    if tensor.is_dynamic:
        return f"the shape of {tensor} is known only while running"
    if not tensor.size:
        return f"{tensor} has no elements"
    if tensor.type in QUANTIZED and not quantized(tensor) and not (tensor.is_constant and tensor.quantization is not None):
        return f"{tensor} has not one scale"
    if tensor.ndim > _MAX_RANK:
        return f"{tensor} has more than {_MAX_RANK} dimensions"
    return ""
