"""TFLite_Detection_PostProcess, compiled: float boxes and scores; one class per detection, or suppression per class."""

from __future__ import annotations

from typing import Any

import numpy as np

from oplet import Context, Node, NodeLimits, TensorType, charge, checkpoint, decline, ensure
from oplet_builtin_ops.ops.custom.tflite_detection_post_process import REGISTRATION as BUILTIN
from oplet_compiled_ops.library.memory import writable
from oplet_compiled_ops.overriding import Bind, Thunk, override
from oplet_compiled_ops.shaping.detecting import BEST, DECODE, PICK, PLACE_WORDS

#: Bytes of scratch for each box.
_BOX_BYTES = 40
#: The numbers that a call decodes or compares.
_TOGETHER = 1 << 20


def plan(context: Context, node: Node) -> Bind:
    boxes, scores, anchors = node.inputs
    settings: Any = node.prepared
    count, classes = boxes.shape[1], scores.shape[2]
    if not count or not settings.detections:
        decline("there is nothing to choose from, or nothing to choose.")
    if not settings.regular and settings.classes_per_detection > 1:
        decline("its detections have several classes.")
    charge(_BOX_BYTES * count)
    for kernel in (DECODE, BEST, PICK):
        kernel.entry()
    first = classes - settings.classes
    ranges = [(i, min(i + _TOGETHER // (classes + 64) + 1, count)) for i in range(0, count, _TOGETHER // (classes + 64) + 1)]
    most = min(settings.detections_per_class, settings.detections) if settings.regular else settings.detections

    def bind() -> Thunk:
        decode, best, pick = DECODE.compiled(), BEST.compiled(), PICK.compiled()
        encoded = writable(boxes.data).reshape(count, -1)
        places = writable(anchors.data).reshape(-1)
        rows = writable(scores.data).reshape(count, classes)
        bits = rows.view(np.int32)
        corners_out, classes_out, scores_out, count_out = (tensor.data for tensor in node.outputs)
        corners_out, classes_out, scores_out = corners_out[0], classes_out[0], scores_out[0]
        corners = np.empty((count, 5), np.float32)
        edges = corners[:, :4]
        values, kinds = np.empty(count, np.float32), np.empty(count, np.int64)
        heap, place = np.empty(count, np.int64), np.zeros(PLACE_WORDS, np.int64)
        found, crossed = np.empty(min(most, count), np.int64), np.empty(1, np.int64)
        limits = settings.score_threshold, settings.overlap_threshold

        def decode_all() -> None:
            crossed[0] = -1
            for start, end in ranges:
                decode(encoded, places, *settings.scales, corners, crossed, start, end)
                checkpoint()
            if crossed[0] >= 0:
                ensure(False, f"box {crossed} of {boxes} has its corners on the wrong sides.")

        def chosen() -> Any:
            """Run the suppression kernel on `values`, with checkpoints between its calls; return the numbers of the boxes that it
            keeps.
            """
            arguments = corners, values, *limits, heap, found, len(found), place
            pick(*arguments, 0)
            while place[0]:
                checkpoint()
                pick(*arguments, 1)
            return found[: place[1]]

        def write(picked: Any, classes: Any, scores: Any) -> None:
            number = len(picked)
            for output in (corners_out, classes_out, scores_out):
                output[number:] = 0
            edges.take(picked, 0, corners_out[:number])
            classes_out[:number] = classes
            scores_out[:number] = scores
            count_out[0] = number

        def fast() -> None:
            decode_all()
            for start, end in ranges:
                best(rows, bits, first, values, kinds, start, end)
                checkpoint()
            picked = chosen()
            write(picked, kinds.take(picked), values.take(picked))

        def regular() -> None:
            decode_all()
            parts, numbers, kept = [], [], []
            for column in range(first, classes):
                values[...] = rows[:, column]
                picked = chosen()
                parts.append(picked.copy())
                kept.append(values.take(picked))
                numbers.append(len(picked))
                checkpoint()
            every = np.concatenate(kept)
            order = np.argsort(-every, kind="stable")[: settings.detections]
            write(np.concatenate(parts)[order], np.repeat(np.arange(settings.classes), numbers)[order], every[order])

        return regular if settings.regular else fast

    return bind


REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[[TensorType.FLOAT32]] * 3))
