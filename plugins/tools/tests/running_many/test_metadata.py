"""What a model's metadata say of pictures and labels is done, told, and can be overridden."""

from __future__ import annotations

import csv
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from plugins.tools.tests.running_many.attached import archive, classifier, metadata

FILES = {"labels.txt": b"red\ngreen\nblue\n", "other.txt": b"a\nb\nc\n"}


@pytest.fixture
def colours(tmp_path: Path) -> Path:
    folder = tmp_path / "colours"
    folder.mkdir()
    for name, colour in (("b", (1, 2, 200)), ("g", (1, 200, 2)), ("r", (200, 2, 1))):
        Image.new("RGB", (2, 2), colour).save(folder / f"{name}.png")
    return folder


def best(text: str) -> list[tuple[str, float]]:
    lines = [json.loads(line) for line in text.splitlines()]
    return [(line["top"]["scores"][0]["label"], line["top"]["scores"][0]["value"]) for line in lines]


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_pictures_are_normalized_and_scores_labelled_as_the_metadata_say(
    oplet, colours: Path, tmp_path: Path, method: int
) -> None:
    model = tmp_path / "m.tflite"
    said = metadata([100, 100, 100], [2, 2, 2], [("other.txt", 1), ("labels.txt", 2), ("later.txt", 2)])
    model.write_bytes(classifier(said, archive(FILES, method)))
    ran = oplet("run", model, "-i", colours)
    assert ran.code == 0, ran.err
    assert best(ran.out) == [("blue", 50.0), ("green", 50.0), ("red", 50.0)]
    assert "labels of 'labels.txt', as the model's metadata say" in ran.err
    assert "pixels became (pixel - mean) / std with mean [100, 100, 100], std [2, 2, 2], as the model's metadata say" in ran.err
    two = oplet("run", model, "-i", colours, "--top", 2)
    assert [len(json.loads(line)["top"]["scores"]) for line in two.out.splitlines()] == [2, 2, 2]


def test_the_user_s_word_stands_above_the_metadata(oplet, colours: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.tflite"
    model.write_bytes(classifier(metadata([100], [2]), archive(FILES)))
    (tmp_path / "mine.txt").write_text("rouge\nvert\nbleu\n")
    ran = oplet("run", model, "-i", colours, "--labels", tmp_path / "mine.txt", "--preprocess", "mean=0,std=10")
    assert best(ran.out) == [("bleu", 20.0), ("vert", 20.0), ("rouge", 20.0)]
    assert "metadata" not in ran.err
    assert best(oplet("run", model, "-i", colours, "--preprocess", "order=bgr").out)[0][0] == "red"


def test_labels_reach_csv(oplet, colours: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.tflite"
    model.write_bytes(classifier(metadata(), archive(FILES | {"labels.txt": b"=red\ngr,een\nbl\x1bue"})))
    oplet("run", model, "-i", colours, "-o", tmp_path / "r.csv", "--top", 1)
    content = (tmp_path / "r.csv").read_text()
    assert "\x1b" not in content
    rows = list(csv.DictReader(content.splitlines()))
    assert [row["scores_top1_label"] for row in rows] == ["bl\\x1bue", "gr,een", "'=red"]
    assert [float(row["scores_top1_score"]) for row in rows] == [pytest.approx(200 / 255)] * 3
    assert [row["scores_top1_index"] for row in rows] == ["2", "1", "0"]


@pytest.mark.parametrize(
    ("said", "attached", "words"),
    [
        (metadata(), archive({"labels.txt": b"red\ngreen\n"}), "has 2 labels for 3 scores of 'scores', and is not used"),
        (metadata(), b"", "they name the file 'labels.txt', which is not attached to the model; give --labels."),
        (metadata(), archive({"x": b""}), "which is not attached"),
        (metadata(), archive(FILES)[:-30], "which is not attached"),
        (metadata(), archive({"labels.txt": b"\xff\xfe"}), "cannot be read"),
        (b"\xff" * 40, archive(FILES), "cannot be read"),
        (metadata(), archive({"labels.txt": bytes(9 << 20)}, zipfile.ZIP_DEFLATED), "more than the 8388608 that are read"),
        (metadata(), archive(FILES, zipfile.ZIP_BZIP2), "compressed by method 12"),
    ],
)
def test_labels_that_cannot_be_had_are_told_and_the_rows_run(
    oplet, tmp_path: Path, said: bytes, attached: bytes, words: str
) -> None:
    model = tmp_path / "m.tflite"
    model.write_bytes(classifier(said, attached))
    (tmp_path / "x.jsonl").write_text(json.dumps({"image": np.zeros((2, 2, 3)).tolist()}))
    ran = oplet("run", model, "-i", tmp_path / "x.jsonl")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["outputs"] == {"scores": [0, 0, 0]}
    assert f"{words}" in ran.err
    assert ran.err.count("warning: ") == 1


def test_models_whose_file_says_nothing_have_their_values(oplet, colours: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.tflite"
    for said in (None, metadata(files=[("labels.txt", 3), ("labels.txt", 1)])):
        model.write_bytes(classifier(said, archive(FILES)))
        ran = oplet("run", model, "-i", colours)
        assert ran.code == 0
        assert "top" not in ran.out
        assert "metadata" not in ran.err
