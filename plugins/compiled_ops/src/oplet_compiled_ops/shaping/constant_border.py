"""PAD of maps: a constant border around rows, columns and channels. Values are copied as raw bits of any type."""

from __future__ import annotations

from oplet_compiled_ops.library.kernels import Kernel
from oplet_compiled_ops.library.lazy import emitted

__all__ = ["BORDER"]

shaped = emitted("views:shaped")


def _border(source, target, first, last, image, top, left, front, value):  # type: ignore[no-untyped-def]
    images, rows, columns, channels = source.shape
    for number in range(first, last):
        n, y = number // target.shape[1], number % target.shape[1]
        line = target[n, y]
        flat = shaped(line, (line.size,))
        if n < image or n >= image + images or y < top or y >= top + rows:
            flat[:] = value
            continue
        values = source[n - image, y - top]
        if channels == line.shape[1]:
            start, size = left * channels, columns * channels
            flat[:start] = value
            inner, found = flat[start : start + size], shaped(values, (size,))
            for i in range(size):
                inner[i] = found[i]
            flat[start + size :] = value
            continue
        flat[:] = value
        for x in range(columns):
            pixel, taken = line[left + x, front : front + channels], values[x]
            for c in range(channels):
                pixel[c] = taken[c]


#: By the size of a number: the kernel of four-dimensional maps. Arguments: the first and last row of all outputs together; the
#: padding before the images, rows, columns and channels; the value of the border.
BORDER = {
    size: Kernel(_border, f"void(u{size}[:,:,:,::1], u{size}[:,:,:,::1], i8, i8, i8, i8, i8, i8, u{size})") for size in (1, 4)
}
