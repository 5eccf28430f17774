"""Shared parts of TensorList nodes: attributes, reading of input lists, writing of outputs."""

from __future__ import annotations

from oplet import Context, Node, Tensor, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Array
from oplet.kernels.limits import paced
from oplet.kernels.options import Shape
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.lists.partial_shapes import is_defined, merged, read_partial_shape, shown
from oplet_flex_ops.lists.tensor_list import Element, TensorList

__all__ = [
    "as_list",
    "defined_shape",
    "ensure_index_vector",
    "ensure_number",
    "ensure_shape_tensor",
    "gives_list",
    "gives_tensor",
    "read_list",
    "resize_to_element",
    "stack_into",
]

_INTEGERS = (TensorType.INT32, TensorType.INT64)


def gives_list(context: Context, output: Tensor) -> None:
    """Check in `prepare` that the output is a VARIANT tensor, and resize it to a scalar that holds one list."""
    ensure_type(output, TensorType.VARIANT)
    context.resize_tensor(output, ())


def gives_tensor(context: Context, attributes: Attributes, output: Tensor) -> None:
    """Check in `prepare` that the output has the type of attribute `element_dtype`, and make its shape dynamic."""
    attributes.ensure_type("element_dtype", output)
    context.set_dynamic(output)


def ensure_shape_tensor(tensor: Tensor) -> None:
    """Check that a tensor can hold a shape (a vector of INT32 or INT64, or a scalar -1 for any shape); raise EnsureError if not."""
    ensure_type(tensor, *_INTEGERS)
    ensure(tensor.ndim <= 1, lambda: f"the element shape {tensor} must be a vector of sizes.")


def ensure_number(tensor: Tensor) -> None:
    """Raise an error in `prepare` unless a tensor is a single INT32."""
    ensure_type(tensor, TensorType.INT32)
    ensure(tensor.size == 1, lambda: f"{tensor} must hold one number.")


def ensure_index_vector(tensor: Tensor) -> None:
    """Raise an error in `prepare` unless a tensor is a vector of INT32."""
    ensure_type(tensor, TensorType.INT32)
    ensure(tensor.ndim == 1, lambda: f"the indices {tensor} must be a vector.")


def read_list(node: Node, type: TensorType | None = None) -> TensorList:
    """Return the list that the first input holds.

    Args:
        type: the element type that it must have; None for any.

    Raises:
        EnsureError: the input holds no list, or one of another element type.
    """
    tensor = node.inputs[0]
    ensure(not tensor.ndim, lambda: f"{tensor} must hold one list, as a scalar.")
    return as_list(tensor.data.item(), tensor, type)


def as_list(value: object, tensor: Tensor, type: TensorType | None = None) -> TensorList:
    """Check that a VARIANT tensor's value is a list (of `type` if given) and return it.

    Raises:
        EnsureError: the value is no list, or a list of another element type.
    """
    if not isinstance(value, TensorList):
        ensure(False, f"{tensor} holds no list of tensors.")
        raise TypeError  # not reached: `ensure` has raised
    ensure(
        type is None or value.type is type,
        lambda: (
            f"the list in {tensor} is of {value.type.name} elements, the node's attribute element_dtype is {type and type.name}."
        ),
    )
    return value


def defined_shape(found: TensorList, asked: Shape, elements: list[Element]) -> tuple[int, ...]:
    """Return the shape that all `elements` share, merged from the shapes that list and node declare and those of set elements.

    Args:
        asked: the element shape that the node asks for.

    Raises:
        EnsureError: a size of the shape is unknown, or the shapes conflict.
    """
    shape = found.element_shape(asked, elements)
    if shape is None or not is_defined(shape):
        ensure(False, f"the shape of the elements is not known: it is {shown(shape)}, and no element was set that tells it.")
    return shape or ()


def resize_to_element(context: Context, found: TensorList, element: Element, shape: Tensor, output: Tensor, others: bool) -> None:
    """Resize the output to an element's shape and write the element; zeros for an unset one.

    Args:
        shape: the input that holds the element shape that the node asks for.
        others: whether an unset element may take its shape from the list's other elements.
    """
    if element is None:
        asked = found.element_shape(read_partial_shape(shape), [])
        context.resize_tensor(output, defined_shape(found, asked, found.elements() if others and not is_defined(asked) else []))
        output.data[...] = found.zero
    else:
        context.resize_tensor(output, element.shape)
        output.data[...] = element


def stack_into(context: Context, found: TensorList, elements: list[Element], asked: Shape, output: Tensor) -> None:
    """Stack the elements along a new first axis into the output; zeros for unset ones."""
    if not elements:
        shape = merged(asked, found.shape, "the elements of the list")
        ensure(is_defined(shape), lambda: f"no elements are stacked, and their shape, {shown(shape)}, is not known.")
    context.resize_tensor(output, (len(elements), *defined_shape(found, asked, elements)))
    rows: Array = output.data
    for row, element in enumerate(paced(elements, 64)):
        rows[row, ...] = (
            found.zero if element is None else element
        )  # `...` has numpy copy an array of one object, not refer to it
