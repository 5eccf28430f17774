"""The custom ops that LiteRT's built-in resolver brings."""

from __future__ import annotations

import numpy as np
import pytest
from flatbuffers import flexbuffers

from oplet.errors import InvokeError, PrepareError
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec


def custom(name, inputs, outputs, **options):
    return one_op_model(name, inputs, outputs, custom_options=bytes(flexbuffers.Dumps(options)))


def spectrogram(shape, **options):
    return custom("AudioSpectrogram", [Spec("float32", shape)], [Spec("float32", [1, 1, 1])], **options)


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize(("shape", "window", "stride"), [((64, 1), 16, 8), ((50, 2), 12, 5), ((5, 2), 12, 5), ((33, 3), 2, 1)])
def test_spectrograms_agree_with_litert(litert, shape, window, stride, squared):
    sound = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    model = spectrogram(shape, window_size=window, stride=stride, magnitude_squared=squared)
    (result,), (wanted,) = run_op(model, sound), litert(model, sound)
    assert result.shape == wanted.shape
    np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "message"), [({"window_size": 1, "stride": 1}, "window_size is 1"), ({"window_size": 4}, "stride is 0")]
)
def test_spectrograms_of_nothing_are_refused(options, message):
    with pytest.raises(PrepareError, match=message):
        run_op(spectrogram((8, 1), **options), np.zeros((8, 1), np.float32))


def mfcc(shape, **changes):
    options = {
        "upper_frequency_limit": 4000,
        "lower_frequency_limit": 20,
        "filterbank_channel_count": 40,
        "dct_coefficient_count": 13,
    }
    return custom("Mfcc", [Spec("float32", shape), Spec("int32", [1])], [Spec("float32", [1, 1, 1])], **{**options, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"filterbank_channel_count": 10, "dct_coefficient_count": 10},
        {"lower_frequency_limit": 0},
        {"upper_frequency_limit": 9000},
    ],
)
@pytest.mark.parametrize("rate", [8000, 16000])
@pytest.mark.parametrize("bins", [33, 257])
def test_cepstra_agree_with_litert(litert, bins, rate, changes):
    frames = np.random.default_rng(bins).uniform(0, 9, (2, 3, bins)).astype(np.float32)
    model, rates = mfcc(frames.shape, **changes), np.array([rate], np.int32)
    (result,), (wanted,) = run_op(model, frames, rates), litert(model, frames, rates)
    assert result.shape == wanted.shape
    np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    ("changes", "message"), [({"dct_coefficient_count": 41}, "41"), ({"lower_frequency_limit": 5000}, "ascend")]
)
def test_cepstra_that_do_not_exist_are_refused(changes, message):
    with pytest.raises(PrepareError, match=message):
        run_op(mfcc((1, 1, 257), **changes), np.zeros((1, 1, 257), np.float32), np.array([16000], np.int32))


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize(
    ("shape", "size"), [((2, 8), 8), ((3, 2, 12), 4), ((2, 7), 4), ((2, 6), 3), ((1, 256), 128), ((4, 4), 1)]
)
def test_rotations_are_those_of_litert(shape, size, dtype, litert):
    # The reference kernels lack this one.
    # Bits of ordinary floats: how a processor rounds denormal ones depends on modes that libraries set.
    values = np.random.default_rng(size).integers(-9, 9, shape).astype(np.float32).view(dtype)
    model = custom(
        "aeq.hadamard_rotation", [Spec(dtype, shape)], [Spec(dtype, shape)], hadamard_size=size, random_binary_vector=[1, -1]
    )
    np.testing.assert_array_equal(run_op(model, values)[0], litert(model, values, kernels=None)[0])


def test_a_rotation_of_two_values_is_their_sum_and_difference():
    model = custom("aeq.hadamard_rotation", [Spec("float32", [1, 2])], [Spec("float32", [1, 2])], hadamard_size=2)
    (result,) = run_op(model, np.array([[3, 1]], np.float32))
    np.testing.assert_allclose(result, np.array([[4, 2]]) / np.sqrt(2), rtol=1e-6)


def verify(kind, **options):
    source = Spec(kind, [4]) if kind == "float16" else Spec(kind, [4], 0.5, 3 if kind != "int16" else 0)
    return custom("NumericVerify", [source, Spec("float32", [4])], [Spec("float32", [4])], **options)


@pytest.mark.parametrize("kind", ["uint8", "int8", "int16", "float16"])
def test_differences_from_the_reference_agree_with_litert(litert, kind):
    model = verify(kind, tolerance=0.5, log_if_failed=False)
    values, reference = np.array([1, 2, 3, 100]).astype(kind), np.array([0.25, -1, 7, 48], np.float32)
    np.testing.assert_array_equal(run_op(model, values, reference)[0], litert(model, values, reference)[0])


def test_a_difference_beyond_the_tolerance_is_an_error():
    model = verify("int8", tolerance=2.0, log_if_failed=True)
    values = np.array([3, 4, 5, 6], np.int8)
    np.testing.assert_array_equal(run_op(model, values, np.array([0, 0.5, 1, 2.5], np.float32))[0], [0, 0, 0, -1])
    with pytest.raises(InvokeError, match=r"1\.5 away from its reference, more than the tolerance of 1"):
        run_op(model, values, np.array([0, 0.5, 1, 3], np.float32))


def detection(count, classes, kind="float32", background=1, **changes):
    options = {
        "max_detections": 5,
        "max_classes_per_detection": 1,
        "detections_per_class": 3,
        "use_regular_nms": False,
        "nms_score_threshold": 0.2,
        "nms_iou_threshold": 0.5,
        "num_classes": classes,
        "y_scale": 10.0,
        "x_scale": 10.0,
        "h_scale": 5.0,
        "w_scale": 5.0,
    }
    quantized = (0.05, 100) if kind == "uint8" else ()
    inputs = [Spec(kind, shape, *quantized) for shape in ([1, count, 4], [1, count, classes + background], [count, 4])]
    return custom("TFLite_Detection_PostProcess", inputs, [Spec("float32", [1])] * 4, **{**options, **changes})


@pytest.mark.parametrize("kind", ["float32", "uint8"])
@pytest.mark.parametrize("background", [0, 1])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"max_classes_per_detection": 2},
        {"use_regular_nms": True},
        {"nms_iou_threshold": 0.1},
        {"use_regular_nms": True, "max_detections": 2},
    ],
)
def test_detections_agree_with_litert(litert, changes, background, kind):
    rng = np.random.default_rng(3)
    count, classes = 30, 3
    boxes, scores = rng.normal(size=(1, count, 4)), rng.permutation(count * (classes + background)).reshape(1, count, -1) / 100
    anchors = np.concatenate([rng.uniform(0, 2, (count, 2)), rng.uniform(0.3, 1, (count, 2))], axis=1)
    feeds = [boxes, scores, anchors]
    if kind == "uint8":
        feeds = [np.round(feed / 0.05) + 100 for feed in (boxes, scores, anchors)]
    feeds = [feed.astype(kind) for feed in feeds]
    model = detection(count, classes, kind, background, **changes)
    results, wanted = run_op(model, *feeds), litert(model, *feeds)
    found = int(wanted[3][0]) * (1 if changes.get("use_regular_nms") else changes.get("max_classes_per_detection", 1))
    assert [result.shape for result in results] == [value.shape for value in wanted]
    assert results[3][0] == wanted[3][0] > 0
    # uint8 scores have ties, which LiteRT's partial sort of classes leaves in any order.
    parts = (0, 2) if kind == "uint8" else (0, 1, 2)
    for part in parts:
        np.testing.assert_allclose(results[part][:, :found], wanted[part][:, :found], rtol=1e-5, atol=1e-6)
        assert not results[part][:, found:].any()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nms_iou_threshold": 0.0}, "nms_iou_threshold"),
        ({"num_classes": 9}, "num_classes is 9"),
        ({"max_detections": -1}, "max_detections"),
    ],
)
def test_impossible_detections_are_refused(changes, message):
    feeds = [np.zeros((1, 4, 4), np.float32), np.zeros((1, 4, 3), np.float32), np.zeros((4, 4), np.float32)]
    with pytest.raises(PrepareError, match=message):
        run_op(detection(4, 2, **changes), *feeds)
