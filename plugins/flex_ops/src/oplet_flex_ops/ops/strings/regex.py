"""RegexReplace, StaticRegexReplace, RegexFullMatch and StaticRegexFullMatch: regular expressions of RE2.

The static operators have the pattern among their attributes, the others as an input, which may change from run to run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from oplet import Context, Node, Registration, Tensor, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.strings import STRING, StringMeter, compile_pattern, foresee_match
from oplet_flex_ops.attributes import Attributes, checked_attributes
from oplet_flex_ops.texts.elementwise import checked, put_strings
from oplet_flex_ops.texts.regular import replace_all, replace_first

#: Replaces matches of a pattern in a string by a replacement.
Replace = Callable[[Any, bytes, bytes, StringMeter], bytes]


def prepare_static_match(context: Context, node: Node) -> None:
    """Check the node's input, strings; the pattern is among its attributes."""
    node.prepared = checked_attributes(node, 1).raw("pattern")
    compile_pattern(node.prepared)
    _check(context, node, TensorType.BOOL)


def bind_static_match(context: Context, node: Node) -> Thunk:
    pattern, strings, target = node.prepared, node.inputs[0].data, node.outputs[0].data
    return lambda: _match(pattern, strings, target)


def _match(pattern: bytes, strings: Array, target: Array) -> None:
    compiled, found = compile_pattern(pattern), []
    for string in checked(strings.ravel().tolist()):
        foresee_match(compiled, len(string))
        found.append(compiled.fullmatch(string) is not None)
    put_strings(target, found)


def prepare_replace(context: Context, node: Node) -> None:
    """Check the node's inputs: strings, a pattern, a replacement."""
    node.prepared = _replacement(checked_attributes(node, 3))
    _check(context, node, TensorType.STRING)


def bind_replace(context: Context, node: Node) -> Thunk:
    target, replace = node.outputs[0].data, node.prepared
    strings, pattern, rewrite = (tensor.data for tensor in node.inputs)

    def run() -> None:
        _replace(replace, pattern.item(), rewrite.item(), strings, target)

    return run


def prepare_static_replace(context: Context, node: Node) -> None:
    """Check the node's input, strings; the pattern and the replacement are among its attributes."""
    attributes = checked_attributes(node, 1)
    _check(context, node, TensorType.STRING)
    node.prepared = _replacement(attributes), attributes.raw("pattern"), attributes.raw("rewrite")
    compile_pattern(node.prepared[1])


def bind_static_replace(context: Context, node: Node) -> Thunk:
    replace, pattern, rewrite = node.prepared
    return partial(_replace, replace, pattern, rewrite, node.inputs[0].data, node.outputs[0].data)


def _replace(replace: Replace, source: bytes, rewrite: bytes, strings: Array, target: Array) -> None:
    pattern, meter, made = compile_pattern(source), StringMeter(), []
    for string in checked(strings.ravel().tolist()):
        counted = meter.total
        made.append(replace(pattern, rewrite, string, meter))
        meter.settle(meter.total - counted, len(made[-1]) + STRING)
    put_strings(target, made)


def prepare_match(context: Context, node: Node) -> None:
    """Check the node's inputs: strings and a pattern."""
    checked_attributes(node, 2)
    _check(context, node, TensorType.BOOL)


def bind_match(context: Context, node: Node) -> Thunk:
    strings, pattern, target = node.inputs[0].data, node.inputs[1].data, node.outputs[0].data

    return lambda: _match(pattern.item(), strings, target)


def _replacement(attributes: Attributes) -> Replace:
    return replace_all if attributes.flag("replace_global", default=True) else replace_first


def _check(context: Context, node: Node, type: TensorType) -> None:
    for tensor in node.inputs:
        ensure_type(tensor, TensorType.STRING)
    for tensor in node.inputs[1:]:
        _ensure_scalar(tensor)
    ensure_type(node.outputs[0], type)
    context.resize_tensor(node.outputs[0], node.inputs[0].shape)


def _ensure_scalar(tensor: Tensor) -> None:
    ensure(not tensor.ndim, lambda: f"{tensor} must be one string, a scalar.")


REGEXREPLACE = Registration(prepare=prepare_replace, bind=bind_replace, pure=True)
REGEXFULLMATCH = Registration(prepare=prepare_match, bind=bind_match, pure=True)
STATICREGEXREPLACE = Registration(prepare=prepare_static_replace, bind=bind_static_replace, pure=True)
STATICREGEXFULLMATCH = Registration(prepare=prepare_static_match, bind=bind_static_match, pure=True)
