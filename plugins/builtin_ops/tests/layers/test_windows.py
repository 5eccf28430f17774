from __future__ import annotations

import numpy as np
import pytest

from oplet.errors import PrepareError
from oplet.kernels.windows import Axis, window_axis
from oplet.schema.enums import Padding
from oplet_builtin_ops.layers.windows import Strip, Windows, shared_strips


@pytest.mark.parametrize(
    ("padding", "size", "filter", "stride", "dilation", "out", "before"),
    [
        (Padding.SAME, 5, 3, 1, 1, 5, 1),
        (Padding.SAME, 5, 3, 2, 1, 3, 1),
        (Padding.SAME, 6, 3, 2, 1, 3, 0),
        (Padding.SAME, 5, 2, 1, 1, 5, 0),
        (Padding.SAME, 5, 1, 2, 1, 3, 0),
        (Padding.SAME, 6, 3, 1, 2, 6, 2),
        (Padding.VALID, 5, 3, 1, 1, 3, 0),
        (Padding.VALID, 6, 3, 2, 1, 2, 0),
        (Padding.VALID, 7, 3, 1, 3, 1, 0),
        (Padding.VALID, 4, 5, 1, 1, 0, 0),
    ],
)
def test_output_size_and_padding(
    padding: Padding, size: int, filter: int, stride: int, dilation: int, out: int, before: int
) -> None:
    axis = window_axis("h", padding, size, filter, stride, dilation)
    assert (axis.out, axis.before) == (out, before)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((Padding.SAME, 5, 3, 0, 1), "stride_h is 0"),
        ((Padding.SAME, 5, 3, 1, -2), "dilation_h_factor is -2"),
        ((Padding.SAME, 5, 0, 1, 1), "filter's h is 0"),
        ((Padding.SAME, 0, 3, 1, 1), "input's h is 0"),
        ((Padding.VALID, 4, 6, 1, 1), "covers 6 .* has only 4"),
        ((Padding.VALID, 4, 3, 1, 3), "covers 7 .*dilation 3"),
    ],
)
def test_windows_that_make_no_sense_are_refused(arguments: tuple[Padding, int, int, int, int], reason: str) -> None:
    with pytest.raises(PrepareError, match=reason):
        window_axis("h", *arguments)


def some_windows(batch: int = 2) -> Windows:
    return Windows(batch, window_axis("h", Padding.SAME, 5, 3, 2), window_axis("w", Padding.SAME, 7, 4, 1, 2), 3)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("lanes", [1, 2, 3, 5])
def test_lanes_pad_all_that_their_windows_read(lanes: int, batch: int) -> None:
    windows = some_windows(batch)
    source = np.arange(2.0, 2 + batch * 5 * 7 * 3).reshape(batch, 5, 7, 3)
    wanted = np.ones(windows.padded_shape)
    windows.interior(wanted)[...] = source
    for _, strips in windows.padded_apart(shared_strips(windows, 1000, False, lanes)):
        padded = np.zeros(windows.padded_shape)
        for function, arguments in windows.padding_calls(source, padded, 1, strips):
            function(*arguments)
        for strip in strips:
            assert np.array_equal(windows.patches(padded)[strip.where], windows.patches(wanted)[strip.where])


def test_padding_far_below_the_map_is_filled() -> None:
    windows = Windows(1, Axis(2, 5, 1, 1, 5, 1), Axis(2, 1, 1, 1, 2, 0), 1)
    padded = np.zeros(windows.padded_shape)
    ((fill, arguments),) = windows.padding_calls(
        np.ones((1, 2, 2, 1)), padded, 7, [Strip((slice(0, 1), slice(3, 5), slice(0, 2)), 6, 10)]
    )
    fill(*arguments)
    assert not padded[0, :3].any()
    assert (padded[0, 3:] == 7).all()


def test_patches_are_what_the_windows_see() -> None:
    windows = some_windows()
    padded = np.arange(np.prod(windows.padded_shape)).reshape(windows.padded_shape)
    patches = windows.patches(padded)
    assert patches.shape == (2, 3, 7, 3, 4, 3)
    assert patches[1, 2, 5, 1, 3, 2] == padded[1, 2 * 2 + 1, 5 + 2 * 3, 2]


@pytest.mark.parametrize("by_image", [False, True])
@pytest.mark.parametrize("size", [1, 4, 6, 9, 21, 30, 42, 1000])
def test_strips_are_consecutive_and_cover_every_window_once(size: int, by_image: bool) -> None:
    windows = some_windows()
    numbers = np.arange(windows.count).reshape(2, 3, 7)
    seen: list[int] = []
    for strip in windows.strips(size, by_image):
        assert numbers[strip.where].ravel().tolist() == list(range(strip.start, strip.stop))
        assert not by_image or strip.where[0].stop - strip.where[0].start == 1
        seen += range(strip.start, strip.stop)
    assert seen == list(range(windows.count))
