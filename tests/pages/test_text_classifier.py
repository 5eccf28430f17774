"""docs/text-classifier.md, run as it is written: trained with TensorFlow Text, then run where no TensorFlow can be imported."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.children import LONG
from tests.places import ROOT

pytestmark = [
    pytest.mark.sweep,
    pytest.mark.skipif(importlib.util.find_spec("tensorflow_text") is None, reason="pip install -r requirements-tensorflow.txt"),
]

PAGE = ROOT / "docs" / "text-classifier.md"
#: Besides the page's own: other scripts, words that are cut or unknown, accents, no words at all, and bytes that are no UTF-8.
TEXTS = [
    "I loved the acting, simply GREAT!!",
    "Bor\u00edng, and so slow...",
    "",
    "dullness; \u672c\u5f53\u306b!",
    "films" * 30,
    " \t ",
]
RAW = [b"\xff\xfe great", b"bad\x00film"]

#: TensorFlow's own answers, behind the page's code.
TELL = """
import json, sys
answers = model.classify(tf.constant([bytes.fromhex(each) for each in json.loads(sys.argv[1])]))
print(json.dumps({name: answer.numpy().tolist() for name, answer in answers.items()}))
"""

#: Before the page's code, so that an import of TensorFlow fails.
WITHOUT = """
import sys
for name in ("tensorflow", "tensorflow_text", "tflite_runtime", "ai_edge_litert"):
    sys.modules[name] = None
"""

#: The same questions to the file.
ASK = """
import json
answers = classify(texts=np.array([bytes.fromhex(each) for each in json.loads(sys.argv[1])], dtype=object))
print(json.dumps({name: answer.tolist() for name, answer in answers.items()}))
"""


def blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def ran(code: str, folder: Path) -> list[str]:
    """What the code printed, a line each; it is asked for all texts."""
    asked = json.dumps([text.hex() for text in (*(text.encode() for text in TEXTS), *RAW)])
    command = [sys.executable, "-c", code, asked]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=folder)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The folder with the model, and TensorFlow's answers."""
    folder = tmp_path_factory.mktemp("classifier")
    train, convert, _ = blocks()
    return folder, json.loads(ran(train + convert + TELL, folder)[-1])


def test_the_file_gives_tensorflow_s_tokens_and_labels_without_it(told: tuple[Path, dict[str, Any]]) -> None:
    folder, wanted = told
    *_, run = blocks()
    printed, answered = ran(WITHOUT + run + ASK, folder)
    answers = json.loads(answered)
    assert answers["tokens"] == wanted["tokens"]
    np.testing.assert_allclose(answers["probabilities"], wanted["probabilities"], rtol=1e-5, atol=1e-6)
    assert f"```\n{printed}\n```" in PAGE.read_text()


def test_doctor_names_the_package_that_serves_the_custom_ops(told: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = told
    done = subprocess.run(
        [sys.executable, "-m", "oplet", "doctor", "reviews.tflite"], capture_output=True, text=True, timeout=LONG, cwd=folder
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "text_ops" in done.stdout or "oplet-text-ops" in done.stdout
