"""The registry of translators (of operators to jax) by operator name, and the checks that every node must pass before.

Constant parameters of operators: axes, shapes, widths.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, NamedTuple

from oplet import BuiltinOperator, Node, Tensor, TensorType
from oplet_xla_delegate import ops
from oplet_xla_delegate.quantization import QUANTIZED, is_quantized, one_scale

__all__ = ["FLOATS", "INTEGERS", "MOVED", "NUMBERS", "Translator", "refusal", "translates", "translator"]

FLOATS = (TensorType.FLOAT32, TensorType.FLOAT16, TensorType.BFLOAT16, TensorType.FLOAT64)
INTEGERS = (
    TensorType.INT8, TensorType.INT16, TensorType.INT32, TensorType.INT64,
    TensorType.UINT8, TensorType.UINT16, TensorType.UINT32, TensorType.UINT64,
)  # fmt: skip
NUMBERS = (*FLOATS, *INTEGERS)
#: What operators that only move values take.
MOVED = (*NUMBERS, TensorType.BOOL)

Translate = Callable[..., Any]


def _nothing(node: Node) -> str:
    return ""


class Translator(NamedTuple):
    """The translation of one operator: limits, a check, and the function that computes its outputs in jax."""

    #: Returns the output or a sequence of all outputs, from the trace, the node and each input's jax value (None if it is
    #: omitted).
    translate: Translate
    newest: int = 1  #: The newest version of the operator that is translated.
    inputs: tuple[int, int] = (1, 1)  #: The least and the most number of inputs.
    outputs: int | None = 1  #: The number of outputs; None for any number.
    types: Collection[TensorType] = FLOATS  #: The allowed types of inputs and outputs, except for the inputs at `constants`.
    #: Positions of parameter inputs, such as axes or shapes, which must be constant and may have other types.
    constants: tuple[int, ...] = ()
    optional: tuple[int, ...] = ()  #: Positions of inputs that may be left out.
    refuses: Callable[[Node], str] = _nothing  #: Returns why the delegate leaves a node to other kernels; "" if it translates it.
    real: bool = False  #: Whether quantized nodes are computed in real numbers, if the option `quantized` is set.
    scaled: Collection[TensorType] = QUANTIZED  #: The allowed types of a quantized node's tensors.
    moves: bool = False  #: Whether it only moves values, so that quantized ones stay as they are.
    bias: int | None = None  #: The position of the bias, which is an integer in quantized layers; None if the operator has none.
    custom: bool = False  #: Whether it is a custom operator.
    bodies: Callable[[Node], list[int]] | None = None  #: Returns the subgraphs that the node calls; None if it calls none.


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


def refusal(node: Node, *, quantized: bool = False) -> str:
    """Return why the delegate leaves a node to other kernels; "" if translation can be tried.

    Args:
        quantized: whether quantized nodes are computed in real numbers.
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
    scaled = any(is_quantized(tensor) for tensor in node.outputs)
    if scaled and not found.moves:
        if not found.real:
            return f"it is quantized, and {node.op_name} is translated for real numbers only"
        if not quantized and any(tensor is not None and is_quantized(tensor) for tensor in node.inputs):
            return "it is quantized: XLA may be a step off, and steps add up; the option quantized=1 takes it"
    types = found.scaled if scaled and not found.moves else found.types
    reason = _unfit_inputs(node, found, types, scaled) or _first(_unfit(tensor, types) for tensor in node.outputs)
    if not reason and scaled and not found.moves:
        reason = _first("" if one_scale(tensor) else f"{tensor} has not one scale" for tensor in node.outputs)
    if reason:
        return reason
    try:
        return (_rescales(node, found) if found.moves else "") or found.refuses(node)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # a shape that the translation was not written for
        return f"it is not as {node.op_name} is wont to be: {type(error).__name__}: {error}"


def _first(reasons: Iterable[str]) -> str:
    return next(filter(None, reasons), "")


def _unfit_inputs(node: Node, found: Translator, types: Collection[TensorType], scaled: bool) -> str:
    for position, tensor in enumerate(node.inputs):
        if tensor is None:
            if position not in found.optional:
                return f"its input {position} is left out"
            continue
        if position in found.constants:
            if not tensor.is_constant:
                return f"its input {position}, {tensor}, is not constant"
            continue
        if scaled and position == found.bias:
            if not tensor.is_constant:
                return f"its input {position}, {tensor}, is not constant"
            continue
        reason = _unfit(tensor, types)
        if reason:
            return reason
        varies = not tensor.is_constant and tensor.type in QUANTIZED
        if scaled and not found.moves and varies and not one_scale(tensor):
            return f"{tensor} has not one scale"
    return ""


def _unfit(tensor: Tensor, types: Collection[TensorType]) -> str:
    if tensor.is_variable:
        return f"{tensor} is a variable, which stays with the runtime"
    if tensor.sparsity is not None:
        return f"{tensor} is stored sparse, and no translation reads what is stored"
    if tensor.type not in types:
        return f"it works on {', '.join(sorted(t.name for t in types))}, not on {tensor}"
    if tensor.is_dynamic:
        return f"the shape of {tensor} is known only while running"
    if not tensor.size:
        return f"{tensor} has no elements"
    if tensor.quantization is not None and tensor.quantization.block_size:
        return f"{tensor} is quantized by blocks"
    return ""


def _rescales(node: Node, found: Translator) -> str:
    """Return why an operator that only moves values would have to rescale them; "" if not."""
    for position, tensor in enumerate(node.inputs):
        if tensor is None or position in found.constants or not is_quantized(tensor):
            continue
        for out in node.outputs:
            if tensor.type is out.type and (tensor.scale, tensor.zero_point) != (out.scale, out.zero_point):
                return f"{tensor} and {out} have different scales"
            if tensor.per_channel:
                return f"{tensor} has a scale for each channel"
    return ""


def integers(tensor: Tensor) -> list[int]:
    """Return the values of a constant integer tensor."""
    values: list[int] = tensor.data.ravel().tolist()
    return values


def axes_of(axes: Sequence[int], rank: int) -> list[int]:
    """Return the axes with negative ones counted from the end.

    Raises:
        LookupError: an axis is out of range.
    """
    if not all(-rank <= axis < rank for axis in axes):
        raise LookupError(f"the axes {list(axes)} are not all in a tensor of {rank} dimensions")
    return [axis % rank for axis in axes]
