"""Operators that nobody here wrote: those of TensorFlow Text, as its wheel has them, give what TensorFlow itself gives for them."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.environment,
    pytest.mark.skipif(
        sys.platform != "linux" or platform.machine() != "x86_64", reason="TensorFlow Text's wheel is for Linux x86-64"
    ),
    pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="needs tensorflow"),
]
LIBRARY = Path("tensorflow_text", "core", "pybinds", "libpybinds_library_common.so")

#: TensorFlow's answers and the models that its converter makes; in a program of its own, as importing TensorFlow Text loads the library.
REFERENCE = """
import json, sys, tensorflow as tf, tensorflow_text as text

class Tokens(tf.Module):
    def __init__(self):
        self.tokenizer = text.WhitespaceTokenizer()
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def run(self, x):
        ragged, starts, ends = self.tokenizer.tokenize_with_offsets(x)
        return {"tokens": ragged.flat_values, "splits": ragged.row_splits, "starts": starts.flat_values, "ends": ends.flat_values}

class Ngrams(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.string)])
    def run(self, x):
        return {"joined": text.ngrams(x, 2, axis=-1, reduction_type=text.Reduction.STRING_JOIN, string_separator="+")}

class Bits(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def run(self, x):
        return {"bits": text.utf8_binarize(x, bits_per_char=24, word_length=5)}

def plain(value):
    return json.loads(json.dumps(value.numpy().tolist(), default=lambda b: b.decode()))

answers = {}
for module, x in (
    (Tokens(), ["hello big  world", "", " gr\\u00f6\\u00dfe \\u00df", "\\u4e2d \\u6587"]),
    (Ngrams(), [["a", "\\u00df", ""], ["dd", "e", "f"]]),
    (Bits(), ["hello", "", "\\U0001f600x"]),
):
    function = module.run.get_concrete_function()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function], module)
    converter.allow_custom_ops = True
    name = type(module).__name__
    with open(f"{sys.argv[1]}/{name}.tflite", "wb") as file:
        file.write(converter.convert())
    answers[name] = x, {key: plain(value) for key, value in module.run(tf.constant(x)).items()}
with open(f"{sys.argv[1]}/answers.json", "w") as file:
    json.dump(answers, file)
"""

#: The same models here. TensorFlow comes first: the library needs one of TensorFlow's, which is found where it is loaded already.
HERE = """
import json, sys, tensorflow
import numpy as np
from oplet import Interpreter, MutableOpResolver
from oplet_native_ops import load_registerer

resolver = MutableOpResolver()
for function in sys.argv[3:]:
    resolver.add_all(load_registerer(sys.argv[2], function))
with open(f"{sys.argv[1]}/answers.json") as file:
    answers = json.load(file)
gave = {}
for name, (x, _) in answers.items():
    interpreter = Interpreter(f"{sys.argv[1]}/{name}.tflite", op_resolver=resolver)
    run = interpreter.get_signature_runner()
    values = np.vectorize(lambda text: text.encode(), otypes=[object])(np.array(x, object))
    for _ in range(3):
        out = run(x=values)
    gave[name] = {key: json.loads(json.dumps(value.tolist(), default=lambda b: b.decode())) for key, value in out.items()}
    gave[name + " by"] = [report.plugin for report in interpreter.explain() if report.op.startswith("TFText>")]
import tensorflow_text  # the library is bound by now, and serves TensorFlow as well
gave["after"] = tensorflow_text.WhitespaceTokenizer().tokenize(["a b"]).to_list()[0][1].decode()
print(json.dumps(gave))
"""
FUNCTIONS = [
    "AddByteSplit",
    "AddByteSplitByOffsets",
    "AddFastBertNormalize",
    "AddFastSentencepieceDetokenize",
    "AddFastSentencepieceTokenize",
    "AddFastWordpieceDetokenize",
    "AddFastWordpieceTokenize",
    "AddNgramsStringJoin",
    "AddRaggedTensorToTensor",
    "AddRoundRobinGenerateMasks",
    "AddRoundRobinTrim",
    "AddSentenceFragmenterV2",
    "AddUtf8Binarize",
    "AddWhitespaceTokenize",
]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an unpacked wheel that goes with the TensorFlow that is installed."""
    import tensorflow

    release = ".".join(tensorflow.__version__.split(".")[:2])
    folder = tmp_path_factory.mktemp("tensorflow_text")
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", str(folder)]
    done = subprocess.run([*command, f"tensorflow-text=={release}.*"], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"pip brings no tensorflow-text {release}: {done.stderr.strip().splitlines()[-1]}")
    [wheel] = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder)
    return folder


def program(text: Path, code: str, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(text), "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run([sys.executable, "-c", code, *arguments], env=environment, capture_output=True, text=True)
    assert not done.returncode, done.stdout + done.stderr
    return done.stdout


def test_operators_of_tensorflow_text_give_what_tensorflow_gives(text: Path, tmp_path: Path) -> None:
    program(text, REFERENCE, str(tmp_path))
    answers: dict[str, Any] = json.loads((tmp_path / "answers.json").read_text())
    gave = json.loads(program(text, HERE, str(tmp_path), str(text / LIBRARY), *FUNCTIONS).splitlines()[-1])
    assert set(answers) == {"Tokens", "Ngrams", "Bits"}
    for name, (_, expected) in answers.items():
        assert gave[name] == expected
        assert gave[f"{name} by"] == [LIBRARY.name]
    assert gave["after"] == "b"


def test_after_tensorflow_text_is_imported_its_library_is_refused(text: Path) -> None:
    code = (
        "import sys, tensorflow_text; from oplet.errors import PluginError; from oplet_native_ops import load_registerer\n"
        "try: load_registerer(sys.argv[1], 'AddWhitespaceTokenize')\n"
        "except PluginError as error: print(error)"
    )
    assert "was loaded before" in program(text, code, str(text / LIBRARY))
