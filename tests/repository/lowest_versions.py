"""A short run of one package of the repository, for an environment with the lowest versions that it allows.

usage: python -m lowest_versions PACKAGE EXAMPLES
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from flatbuffers import flexbuffers

from oplet import Context, Interpreter, MutableOpResolver, Node, Registration, TensorType, load_delegate
from oplet_testing import Spec, call_op, one_op_model, run_op

EXAMPLES = Path(sys.argv[2])
PICTURE = np.linspace(0, 1, 64, dtype=np.float32).reshape(1, 8, 8, 1)


def model(name: str) -> bytes:
    return (EXAMPLES / "digits" / f"{name}.tflite").read_bytes()


def core() -> None:
    """The core alone runs a model whose operator the program brings itself."""

    def prepare(context: Context, node: Node) -> None:
        context.resize_tensor(node.outputs[0], node.inputs[0].shape)

    def invoke(context: Context, node: Node) -> None:
        np.multiply(node.inputs[0].data, 2, out=node.outputs[0].data)

    resolver = MutableOpResolver()
    resolver.add_custom("Twice", Registration(prepare=prepare, invoke=invoke))
    twice = one_op_model("Twice", [Spec("float32", [2])], [Spec("float32", [2])])
    [found] = run_op(twice, np.array([1, 2], np.float32), op_resolver=resolver, plugins=[])
    assert found.tolist() == [2, 4]


def command(*words: object) -> None:
    from oplet_tools.cli.main import main

    try:
        main([str(word) for word in words])
    except SystemExit as exit:
        if exit.code:
            raise


def tools() -> None:
    """The command with every extra: pictures, tables, the drawing of a partition."""
    digits = EXAMPLES / "digits"
    command("run", digits / "digits_int8.tflite", "--input", digits / "pictures" / "7.png", "--top", "3")
    command("inspect", digits / "digits_int8.tflite")
    command("partition", digits / "digits_float32.tflite", "--delegate", "example", "--svg", "partition.svg")
    assert Path("partition.svg").stat().st_size > 1000


def build() -> None:
    command("build", EXAMPLES / "digits" / "digits_int8.tflite", "--name", "digits", "--output", ".")
    assert len(list(Path().glob("digits-*.whl"))) == 1


def predictor() -> None:
    from oplet import Predictor

    found = Predictor(EXAMPLES / "digits" / "digits_float32.tflite")(np.repeat(PICTURE, 3, axis=0))
    assert [rows.shape for rows in (found.values() if isinstance(found, dict) else [found])] == [(3, 10)]


def compiled_model() -> None:
    from oplet.compiled_model import CompiledModel

    model = CompiledModel.from_file(EXAMPLES / "digits" / "digits_float32.tflite")
    inputs, outputs = model.create_input_buffers(0), model.create_output_buffers(0)
    inputs[0].write(PICTURE)
    for _ in range(2):
        model.run_by_index(0, inputs, outputs)
        assert abs(outputs[0].read(10, np.float32).sum() - 1) < 1e-5


def testing() -> None:
    from oplet.testing import OpContract

    assert OpContract.__name__ == "OpContract"
    [found] = call_op("NEG", [np.array([1, -2], np.float32)], [Spec("float32", [2])])
    assert found.tolist() == [-1, 2]


def builtin_ops() -> None:
    [exact] = run_op(model("digits_float32"), PICTURE, plugins=["oplet-builtin-ops"])
    np.testing.assert_allclose(exact.sum(), 1, rtol=1e-5)
    [rough] = run_op(model("digits_int8"), np.round(PICTURE * 255 - 128).astype(np.int8), plugins=["oplet-builtin-ops"])
    assert (rough.shape, rough.dtype) == ((1, 10), np.int8)
    # Before numpy 2 the values of single numbers decided on the types of results.
    [sums] = call_op("ADD", [np.array([1, 250], np.int64), np.int64(9)], [Spec("int64", [2])], version=4)
    assert sums.tolist() == [10, 259]


def atan_op() -> None:
    [found] = call_op("Atan", [np.array([0, 1], np.float32)], [Spec("float32", [2])])
    np.testing.assert_allclose(found, [0, np.pi / 4], rtol=1e-6)


def compiled_ops() -> None:
    interpreter = Interpreter(model_content=model("digits_float32"))
    interpreter.allocate_tensors()
    assert "oplet-compiled-ops" in str(interpreter.explain())
    [found] = run_op(model("digits_float32"), PICTURE)
    [wanted] = run_op(model("digits_float32"), PICTURE, plugins=["oplet-builtin-ops"])
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def delegated(name: str) -> Callable[[], None]:
    """A check that a delegate takes nodes, and answers as the operators do."""

    def check() -> None:
        interpreter = Interpreter(model_content=model("digits_float32"), experimental_delegates=[load_delegate(name)])
        interpreter.allocate_tensors()
        assert any(report.applied and report.partitions for report in interpreter.delegation_reports()), name
        [found] = run_op(model("digits_float32"), PICTURE, experimental_delegates=[load_delegate(name)])
        [wanted] = run_op(model("digits_float32"), PICTURE)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)

    return check


def coral_ops() -> None:
    maps = [np.full((1, 3, 3, channels), -9 if channels == 17 else 0, np.float32) for channels in (17, 34, 64)]
    maps[0][0, 1, 2] = 3
    options = bytes(flexbuffers.Dumps({"max_detections": 1, "score_threshold": 0.5, "stride": 16, "nms_radius": 20.0}))
    shapes = ([1, 1, 17, 2], [1, 1, 17], [1, 1], [1])
    points, *_, count = call_op("PosenetDecoderOp", maps, [Spec("float32", shape) for shape in shapes], custom_options=options)
    assert (count.tolist(), points[0, 0, 0].tolist()) == ([1], [16, 32])


def larq_ops() -> None:
    values = np.array([[-1, 2, -3, 4]], np.float32)
    [words] = call_op("LceQuantize", [values], [Spec("int32", [1, 1])])
    assert words.tolist() == [[5]]


def mediapipe_ops() -> None:
    values = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)
    pooling = struct.pack("<10i", 2, 2, 2, 2, 2, 0, 0, 0, 0, 0)
    results = [Spec("float32", [1, 2, 2, 1]), Spec("float32", [1, 2, 2, 1])]
    highest, _ = call_op("MaxPoolingWithArgmax2D", [values], results, custom_options=pooling)
    assert highest.ravel().tolist() == [5, 7, 13, 15]


def native_ops() -> None:
    """Without a compiler: the library is there and is bound, and a library that is none is refused."""
    from oplet.errors import PluginError
    from oplet_native_ops import include_dir, load_ops

    assert (include_dir() / "tflite/c/c_api_opaque.h").is_file()
    refused = ""
    try:
        load_ops(__file__)
    except PluginError as error:
        refused = str(error)
    assert ("it is no ELF file" if sys.platform == "linux" else "64-bit Linux alone") in refused


def flex_options(op: str, **types: int) -> bytes:
    """Custom options of a Flex node whose attributes are all element types, by TensorFlow's numbers."""
    node = bytes([0x12, len(op)]) + op.encode()
    for name, number in types.items():
        entry = bytes([0x0A, len(name)]) + name.encode() + bytes([0x12, 2, 0x30, number])
        node += bytes([0x2A, len(entry)]) + entry
    return bytes(flexbuffers.Dumps([op, node.decode()]))


def inverse(plugin: str) -> None:
    [found] = call_op(
        "FlexMatrixInverse",
        [np.array([[2, 0], [0, 4]], np.float32)],
        [Spec("float32", [2, 2])],
        custom_options=flex_options("MatrixInverse", T=1),
        plugins=["oplet-builtin-ops", plugin],
    )
    np.testing.assert_allclose(found, [[0.5, 0], [0, 0.25]], rtol=1e-6)


def text_ops() -> None:
    [found] = call_op("CaseFoldUTF8", [np.array(["Straße".encode()], object)], [Spec(TensorType.STRING, [1])])
    assert found.tolist() == [b"strasse"]


def beam_handler() -> None:
    import apache_beam as beam
    from apache_beam.ml.inference.base import RunInference
    from apache_beam.testing.util import assert_that, equal_to

    from oplet_beam import OpletModelHandler

    handler = OpletModelHandler(EXAMPLES / "digits" / "digits_float32.tflite", max_batch_size=2)
    with beam.Pipeline() as pipeline:
        results = pipeline | beam.Create([PICTURE[0]] * 3) | RunInference(handler)
        assert_that(results | beam.Map(lambda result: result.inference["probabilities"].shape), equal_to([(10,)] * 3))


def ray_batch() -> None:
    from oplet_ray import PredictBatches

    made = PredictBatches(EXAMPLES / "digits" / "digits_float32.tflite", keep=[])({"image": PICTURE[:1]})
    assert made["probabilities"].shape == (1, 10)


def model_explorer() -> None:
    from oplet_model_explorer import explored_graphs

    [graph] = explored_graphs(EXAMPLES / "digits" / "digits_float32.tflite", ())
    assert "SOFTMAX" in {node["label"] for node in graph["nodes"]}


def serve() -> None:
    import oplet_serve
    from oplet_serve.values.tensors import TensorSpec, read_tensor

    found = read_tensor(TensorSpec("x", np.dtype("float32"), (-1,)), "FP32", [2], [1, 2.5])
    assert found.tolist() == [1, 2.5]
    assert oplet_serve.OpletRuntime.__name__ == "OpletRuntime"


def litert_shim() -> None:
    import oplet_litert_shim
    from oplet_litert_shim import answers

    oplet_litert_shim.install()
    assert oplet_litert_shim.LastFinder in sys.meta_path
    assert len(answers.states()) == 2


def lm() -> None:
    import sentencepiece
    from tokenizers import Tokenizer, models

    from oplet_lm import LanguageModel
    from oplet_lm.template import render

    text = Tokenizer(models.BPE(vocab={"a": 0, "b": 1}, merges=[])).to_str()
    assert Tokenizer.from_str(text).encode("ab", add_special_tokens=False).ids == [0, 1]
    assert sentencepiece.SentencePieceProcessor.__name__ == "SentencePieceProcessor"
    assert render("{{ messages[0].content }}", [{"role": "user", "content": "hello"}], {}) == "hello"
    assert LanguageModel.__name__ == "LanguageModel"


def signal_ops() -> None:
    options = bytes(flexbuffers.Dumps({"start_index": 0, "end_index": 2}))
    [energies] = call_op("SignalEnergy", [np.array([3, 4, 0, -5], np.int16)], [Spec("uint32", [2])], custom_options=options)
    assert energies.tolist() == [25, 25]


CHECKS = {
    "core": core,
    "atan_op": atan_op,
    "beam_handler": beam_handler,
    "build": build,
    "builtin_ops": builtin_ops,
    "compiled_model": compiled_model,
    "coral_ops": coral_ops,
    "example_delegate": delegated("example"),
    "flex_delegate": partial(inverse, "oplet-flex-delegate"),
    "flex_ops": partial(inverse, "oplet-flex-ops"),
    "larq_ops": larq_ops,
    "litert_delegate": delegated("litert"),
    "litert_shim": litert_shim,
    "lm": lm,
    "mediapipe_ops": mediapipe_ops,
    "model_explorer": model_explorer,
    "native_ops": native_ops,
    "compiled_ops": compiled_ops,
    "openvino_delegate": delegated("openvino"),
    "predictor": predictor,
    "ray_batch": ray_batch,
    "serve": serve,
    "signal_ops": signal_ops,
    "testing": testing,
    "text_ops": text_ops,
    "tools": tools,
    "xla_delegate": delegated("xla"),
}

if __name__ == "__main__":
    CHECKS[sys.argv[1]]()
