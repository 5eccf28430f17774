"""`oplet run` on one picture: the outputs of a TFLite_Detection_PostProcess are shown as boxes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import flatbuffers.flexbuffers as flex
import numpy as np
import pytest
from PIL import Image
from plugins.tools.tests.running_many.attached import archive, metadata

from oplet import ModelBuilder

VALUE = 3
CLASSES = b"cat\ndog\nbird\n"
#: Two boxes, far from each other, with their scores for three classes: a bird of 0.9 above a cat of 0.7.
BOXES = np.array([[0.1, 0.2, 0.3, 0.4], [0.5, 0.5, 0.9, 0.8]], np.float32)
SCORES = np.array([[0.7, 0.1, 0.2], [0.1, 0.05, 0.9]], np.float32)


def detector(
    said: bytes | None = None, attached: bytes = b"", order: Sequence[int] = (0, 1, 2, 3), signature: bool = False
) -> bytes:
    """A detector that gives two boxes for whatever picture; its outputs may stand in another order than its last op writes them."""
    heights, widths = BOXES[:, 2] - BOXES[:, 0], BOXES[:, 3] - BOXES[:, 1]
    anchors = np.stack([(BOXES[:, 0] + BOXES[:, 2]) / 2, (BOXES[:, 1] + BOXES[:, 3]) / 2, heights, widths], 1).astype(np.float32)
    options = flex.Dumps(
        {
            "max_detections": 4,
            "max_classes_per_detection": 1,
            "nms_score_threshold": 0.3,
            "nms_iou_threshold": 0.5,
            "num_classes": 2,
            **{f"{scale}_scale": 1.0 for scale in "yxhw"},
        }
    )
    builder = ModelBuilder(minimum_runtime=False)
    main = builder.add_subgraph()
    picture = main.add_tensor("picture", "float32", [1, 4, 4, 3])
    zero, axes = (
        main.add_tensor("zero", "float32", [1], data=np.zeros(1, np.float32)),
        main.add_tensor("axes", "int32", [3], data=np.array([1, 2, 3], np.int32)),
    )
    nothing, none = main.add_tensor("none", "float32", [1]), main.add_tensor("nothing", "float32", [1])
    main.add_operator("MEAN", [picture, axes], [none])
    main.add_operator("MUL", [none, zero], [nothing])
    codes = main.add_tensor("codes", "float32", [1, 2, 4], data=np.zeros((1, 2, 4), np.float32))
    moved = main.add_tensor("moved", "float32", [1, 2, 4])
    main.add_operator("ADD", [codes, nothing], [moved])
    scores = main.add_tensor("chances", "float32", [1, 2, 3], data=SCORES[None])
    fixed = main.add_tensor("anchors", "float32", [2, 4], data=anchors)
    written = [main.add_tensor(name, "float32", None) for name in ("a", "b", "c", "d")]
    main.add_operator("TFLite_Detection_PostProcess", [moved, scores, fixed], written, custom_options=options)
    main.set_inputs(picture)
    main.set_outputs(*(written[place] for place in order))
    if signature:
        builder.add_signature("detect", {"image": picture}, {f"output_{i}": written[place] for i, place in enumerate(order)})
    if said is not None:
        builder.add_metadata("TFLITE_METADATA", said)
    return builder.to_bytes() + attached


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "picture.png"
    Image.new("RGB", (4, 4), (3, 2, 1)).save(path)
    return path


def found(ran) -> list[tuple[str, int, float, list[float]]]:
    """Label, class, score and box of each object; boxes as the op writes them (top, left, bottom, right), as parts of the picture."""
    assert ran.code == 0, ran.err
    told = json.loads(ran.out)["objects"]
    assert told["unit"] == "pixels"
    edges = [[d["box"][place] / 4 for place in (1, 0, 3, 2)] for d in told["found"]]
    return [(d["label"], d["number"], round(d["score"], 4), box) for d, box in zip(told["found"], edges)]


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2)])
@pytest.mark.parametrize("signature", [False, True])
def test_a_detector_s_outputs_are_boxes_with_class_label_and_score(
    oplet, tmp_path: Path, picture: Path, order: tuple[int, ...], signature: bool
) -> None:
    model = tmp_path / "m.tflite"
    said = metadata(files=[("labelmap.txt", VALUE)], outputs=4, of=order.index(1))
    model.write_bytes(detector(said, archive({"labelmap.txt": CLASSES}), order, signature))
    ran = oplet("run", model, "-i", picture, "--json")
    # The op's class 0 is the scores' column 1, as column 0 is the background.
    assert found(ran)[0][:3] == ("dog", 1, 0.9)
    np.testing.assert_allclose(found(ran)[0][3], BOXES[1], atol=1e-4)
    table = oplet("run", model, "-i", picture).out
    for word in ("objects", "dog", "0.9"):
        assert word in table


def test_without_metadata_boxes_have_no_labels_and_raw_outputs_are_not_read(oplet, tmp_path: Path, picture: Path) -> None:
    model = tmp_path / "m.tflite"
    model.write_bytes(detector())
    everything = found(oplet("run", model, "-i", picture, "--json"))
    assert {label for label, *_ in everything} == {""}
    raw = oplet("run", model, "-i", picture, "--raw", "--json")
    assert "objects" not in json.loads(raw.out)
