"""Models that work on images and volumes."""

from __future__ import annotations

import functools
import io
from typing import Any

import numpy as np
from plugins.flex_ops.tests.record import recording

#: Some of the operators are not on the converter's list, which leaves them as custom operators of their own names.
record = functools.partial(recording.record, converter={"allow_custom_ops": True})
rng = np.random.default_rng(2)


def _image_file(kind: str, **options: Any) -> np.ndarray:
    from PIL import Image

    pixels = (127 + 120 * np.sin(np.arange(20)[:, None, None] / 5 + np.arange(16)[:, None] / 4 + np.arange(3))).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind, **options)
    found = np.empty((), object)
    found[()] = file.getvalue()
    return found


def record_all() -> None:
    """Record the models of this module."""
    import tensorflow as tf

    pictures = [{"x": rng.random((2, 9, 7, 3)).astype(np.float32)}, {"x": rng.random((1, 12, 16, 3)).astype(np.float32)}]
    any_size = {"x": [None, None, None, 3]}

    def resized(x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {
            method: tf.image.resize(x, [11, 6], method, antialias=False)
            for method in ("area", "bicubic", "lanczos3", "gaussian", "mitchellcubic")
        } | {"smooth": tf.image.resize(x, [4, 5], "bilinear", antialias=True)}

    record("images_resized", resized, pictures, free=any_size)

    def augmented(x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {
            "hue": tf.image.adjust_hue(x, 0.3),
            "saturation": tf.image.adjust_saturation(x, 1.7),
            "contrast": tf.image.adjust_contrast(x, 0.4),
            "hsv": tf.image.rgb_to_hsv(x),
            "back": tf.image.hsv_to_rgb(tf.image.rgb_to_hsv(x)),
            "patches": tf.image.extract_patches(x, [1, 3, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "SAME"),
            "boxes": tf.image.draw_bounding_boxes(
                x, tf.tile([[[0.1, 0.2, 0.7, 0.9]]], [tf.shape(x)[0], 1, 1]), [[1.0, 0.0, 0.0]]
            ),
        }

    record("images_augmented", augmented, pictures, free=any_size)

    def cropped(x: tf.Tensor, boxes: tf.Tensor, numbers: tf.Tensor) -> dict[str, tf.Tensor]:
        whole = tf.raw_ops.ImageProjectiveTransformV3(
            images=x, transforms=[[1.1, 0.2, -1.0, -0.1, 0.9, 0.5, 0.001, 0.002]], output_shape=[6, 8], interpolation="BILINEAR",
            fill_mode="REFLECT", fill_value=0.0,
        )  # fmt: skip
        return {
            "crops": tf.image.crop_and_resize(x, boxes, numbers, [4, 5]),
            "near": tf.image.crop_and_resize(x, boxes, numbers, [3, 3], "nearest", 9.0),
            "turned": whole,
            "glimpse": tf.image.extract_glimpse(x, [4, 3], boxes[:2, :2], noise="zero"),
        }

    boxes = rng.random((3, 4)).astype(np.float32)
    calls = [{"x": pictures[0]["x"], "boxes": boxes, "numbers": np.array([0, 1, 1], np.int32)}]
    record("images_cropped", cropped, calls, free={"boxes": [None, 4], "numbers": [None]})

    def detected(boxes: tf.Tensor, scores: tf.Tensor) -> dict[str, tf.Tensor]:
        chosen, kept = tf.image.non_max_suppression_with_scores(boxes[0, :, 0], scores[0, :, 0], 8, 0.5, 0.05, 0.3)
        whole = tf.image.combined_non_max_suppression(boxes, scores, 4, 10, 0.4, 0.1)
        return {
            "chosen": chosen, "kept": kept, "plain": tf.image.non_max_suppression(boxes[0, :, 0], scores[0, :, 1], 6),
            "boxes": whole.nmsed_boxes, "scores": whole.nmsed_scores, "classes": whole.nmsed_classes, "valid": whole.valid_detections,
        }  # fmt: skip

    corners = rng.random((2, 25, 1, 2))
    found = np.concatenate([corners, corners + rng.random(corners.shape) / 2], 3).astype(np.float32)
    record("boxes_suppressed", detected, [{"boxes": found, "scores": rng.random((2, 25, 3)).astype(np.float32)}])

    def decoded(png: tf.Tensor, jpeg: tf.Tensor, gif: tf.Tensor) -> dict[str, tf.Tensor]:
        return {
            "png": tf.image.decode_png(png, 3),
            "grey": tf.image.decode_png(png, 1),
            "jpeg": tf.image.decode_jpeg(jpeg, dct_method="INTEGER_ACCURATE"),
            "small": tf.image.decode_jpeg(jpeg, 1, ratio=2, dct_method="INTEGER_ACCURATE"),
            "crop": tf.image.decode_and_crop_jpeg(jpeg, [2, 3, 6, 6], dct_method="INTEGER_ACCURATE"),
            "gif": tf.image.decode_gif(gif),
            "any": tf.io.decode_image(png, 3, tf.float32, expand_animations=False),
            "again": tf.image.decode_png(tf.image.encode_png(tf.image.decode_png(png, 3))),
        }

    record("images_decoded", decoded, [{"png": _image_file("PNG"), "jpeg": _image_file("JPEG"), "gif": _image_file("GIF")}])

    filters, wide = (rng.normal(size=size).astype(np.float32) for size in ((2, 3, 2, 2, 4), (3, 3, 3, 4, 2)))

    def volumes(x: tf.Tensor) -> dict[str, tf.Tensor]:
        y = tf.nn.relu(tf.nn.conv3d(x, tf.cast(filters, x.dtype), [1, 1, 2, 1, 1], "SAME"))
        pooled = tf.nn.max_pool3d(y, 2, [1, 2, 1, 2, 1], "VALID")
        back = tf.nn.conv3d_transpose(
            pooled, tf.cast(wide.transpose(0, 1, 2, 4, 3), x.dtype), [1, 6, 3, 4, 2], [1, 2, 1, 2, 1], "SAME"
        )
        return {"pooled": pooled, "mean": tf.nn.avg_pool3d(y, [2, 1, 2], [1, 1, 2], "SAME"), "back": back}

    record("volumes", volumes, [{"x": rng.normal(size=(1, 6, 8, 5, 2)).astype(np.float32)}])

    kernel = rng.normal(size=(3, 3, 3)).astype(np.float32)

    def windows(x: tf.Tensor) -> dict[str, tf.Tensor]:
        best, where = tf.nn.max_pool_with_argmax(x, 2, 2, "SAME", include_batch_in_index=True)
        return {
            "best": best,
            "where": where,
            "dilated": tf.nn.dilation2d(x, kernel, [1, 2, 1, 1], "SAME", "NHWC", [1, 1, 2, 1]),
            "eroded": tf.nn.erosion2d(x, kernel, [1, 1, 1, 1], "SAME", "NHWC", [1, 1, 1, 1]),
        }

    record("windows_on_images", windows, [{"x": rng.normal(size=(2, 7, 6, 3)).astype(np.float32)}])
