"""Geometry of transposed convolutions: the windows of the convolutions that they transpose."""

from __future__ import annotations

from oplet.kernels.windows import Axis, window_axis
from oplet.schema.enums import Padding

__all__ = ["transposed_axis"]


def transposed_axis(name: str, padding: Padding, size: int, filter: int, stride: int, inputs: int, dilation: int = 1) -> Axis:
    """Return the windows of a transposed convolution along one axis: those of the convolution that it is the transpose of.

    With SAME padding the geometry is that of a convolution of `size` elements, whose number of windows is the number of inputs.
    With VALID padding each of the `inputs` has a window, and values that windows write beyond `size` are cut off.

    Args:
        name: the axis in messages, such as "height".
        size: the size of the transposed convolution's output.
        inputs: the size of its input.

    Raises:
        EnsureError: a number is not above zero.
    """
    if padding == Padding.SAME or size <= 0 or filter <= 0 or stride <= 0 or dilation <= 0:
        return window_axis(name, padding, size, filter, stride, dilation)
    return Axis(size, filter, stride, dilation, inputs, 0)
