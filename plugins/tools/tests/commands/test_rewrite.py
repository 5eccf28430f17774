"""`oplet rewrite`: what is written runs as before, with less or with another batch size."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pytest

from oplet import Interpreter, Model, ModelBuilder
from oplet.errors import ModelError
from oplet.schema import tables
from oplet.schema.options import ConcatenationOptions, IfOptions, ReducerOptions, ReshapeOptions, TransposeConvOptions
from oplet_testing import litert_interpreter
from oplet_tools.rewriting.rewrite import rewrite

_litert = litert_interpreter("BUILTIN_WITHOUT_DEFAULT_DELEGATES")


def run(model, *inputs, key=None):
    """The outputs of oplet and of LiteRT."""
    content = model.to_bytes() if isinstance(model, Model) else model
    return [_run(make, content, inputs) for make in (Interpreter, _litert)]


def _run(make, content, inputs):
    interpreter = make(model_content=content)
    interpreter.allocate_tensors()
    for details, value in zip(interpreter.get_input_details(), inputs):
        if tuple(details["shape"]) != value.shape:
            interpreter.resize_tensor_input(details["index"], value.shape, strict=True)
            interpreter.allocate_tensors()
        interpreter.set_tensor(details["index"], value)
    interpreter.invoke()
    return [interpreter.get_tensor(details["index"]) for details in interpreter.get_output_details()]


def assert_same(before, after):
    for was, now in zip(before, after, strict=True):
        for a, b in zip(was, now, strict=True):
            np.testing.assert_array_equal(a, b)


def one_line(ran, *words):
    assert ran.code == 1
    assert ran.err.startswith("oplet: ")
    assert ran.err.count("\n") == 1
    for word in words:
        assert word in ran.err


def images(count):
    return np.random.default_rng(1).integers(-128, 128, (count, 8, 8, 1)).astype(np.int8)


# What does not change the graph --------------------------------------------------------------------------------------


def test_versions_and_the_runtime_are_brought_down(oplet, tmp_path):
    builder = ModelBuilder("new")
    main = builder.add_subgraph()
    tensors = [main.add_tensor(name, "float32", [2]) for name in "xyz"]
    main.add_operator("ADD", tensors[:2], tensors[2:], version=4)
    main.set_inputs(*tensors[:2])
    main.set_outputs(tensors[2])
    model = builder.build()
    [entry] = model.root.metadata
    model.root.buffers[entry.buffer] = tables.Buffer(data=np.frombuffer(b"2.99.0".ljust(16, b"\0"), np.uint8))
    path, out = tmp_path / "m.tflite", tmp_path / "out.tflite"
    model.save(path)
    report = json.loads(oplet("rewrite", path, "-o", out, "--json").out)
    assert report["versions"] == [{"op": "ADD", "before": 4, "after": 1, "nodes": 1}]
    assert report["noted_runtime"] == {"before": "2.99.0", "after": "1.5.0"}
    assert report["minimum_runtime"]["after"] == "1.5.0"
    assert report["bytes"] == {"before": path.stat().st_size, "after": out.stat().st_size}
    assert Model.open(out).root.operator_codes[0].version == 1
    assert Model.open(out).root.description == "new"
    kept = json.loads(oplet("rewrite", path, "-o", out, "--json", "--keep-versions").out)
    assert kept["versions"] == []
    assert kept["noted_runtime"]["after"] == kept["minimum_runtime"]["before"]
    assert Model.open(out).root.operator_codes[0].version == 4
    table = oplet("rewrite", path, "-o", out).out
    for words in ("minimum runtime", "2.99.0", "ADD", "bytes"):
        assert words in table


def test_bytes_that_nothing_refers_to_are_carried_along_or_left_out_and_told(oplet, digits, tmp_path):
    path, out = tmp_path / "m.tflite", tmp_path / "out.tflite"
    path.write_bytes(digits.read_bytes() + b"leftover")
    ran = oplet("rewrite", path, "-o", out)
    assert ran.code == 0
    assert "8 bytes at the end of the file that nothing refers to: written as they are" in ran.out
    assert not ran.err
    assert out.read_bytes().endswith(b"leftover")
    report = json.loads(oplet("rewrite", path, "-o", out, "--drop-unreferenced", "--json").out)
    assert (report["unreferenced"], report["unreferenced_kept"]) == (8, False)
    assert not out.read_bytes().endswith(b"leftover")
    assert_same(run(digits.read_bytes(), images(1)), run(out.read_bytes(), images(1)))


def test_metadata_and_the_description_are_changed(oplet, digits, tmp_path):
    note, out = tmp_path / "note.txt", tmp_path / "out.tflite"
    note.write_bytes(b"hello")
    ran = oplet("rewrite", digits, "-o", out, "--metadata", f"note={note}", "--description", "digits", "--json")
    assert json.loads(ran.out)["metadata"] == {"note": "added"}
    model = Model.open(out)
    assert model.metadata("note").tobytes() == b"hello"
    assert model.root.description == "digits"
    note.write_bytes(b"bye")
    again = oplet("rewrite", out, "-o", out, "--force", "--metadata", f"note={note}", "--description", "", "--json")
    assert json.loads(again.out)["metadata"] == {"note": "replaced"}
    assert Model.open(out).metadata("note").tobytes() == b"bye"
    assert Model.open(out).root.description is None
    oplet("rewrite", out, "-o", out, "--force", "--remove-metadata", "note")
    assert b"bye" not in out.read_bytes()
    one_line(oplet("rewrite", out, "-o", out, "--force", "--remove-metadata", "note"), "'note'", "min_runtime_version")


def test_the_model_itself_is_replaced_only_when_told(oplet, digits, tmp_path):
    path = tmp_path / "m.tflite"
    path.write_bytes(digits.read_bytes())
    one_line(oplet("rewrite", path, "-o", tmp_path / "." / "m.tflite"), "--force")
    assert path.read_bytes() == digits.read_bytes()
    assert oplet("rewrite", path, "-o", path, "--force", "--strip").code == 0
    assert path.stat().st_size < digits.stat().st_size
    assert [p.name for p in tmp_path.iterdir()] == ["m.tflite"]


@pytest.mark.parametrize("where", ["inside", "outside"])
def test_constants_go_where_they_are_told(oplet, digits, tmp_path, where):
    out = tmp_path / "out.tflite"
    assert oplet("rewrite", digits, "-o", out, "--constants", where).code == 0
    assert any(buffer.offset > 1 for buffer in Model.open(out).root.buffers) == (where == "outside")
    x = images(1)
    assert_same(run(digits.read_bytes(), x), run(out.read_bytes(), x))


@pytest.mark.parametrize("arguments", [["--batch", "0"], ["--batch", "-2"], ["--metadata", "x"], ["--constants", "elsewhere"]])
def test_wrong_usage_is_refused(oplet, digits, tmp_path, arguments):
    assert oplet("rewrite", digits, "-o", tmp_path / "out.tflite", *arguments).code == 2
    assert not list(tmp_path.iterdir())


def test_errors_are_one_line(oplet, digits, tmp_path):
    one_line(oplet("rewrite", tmp_path / "none.tflite", "-o", tmp_path / "out.tflite"), "none.tflite")
    one_line(oplet("rewrite", digits, "-o", tmp_path / "no" / "out.tflite"), "out.tflite")
    one_line(oplet("rewrite", digits, "-o", tmp_path / "out.tflite", "--metadata", f"x={tmp_path / 'none'}"), "none")


# Stripping -------------------------------------------------------------------------------------------------------------


def branches(custom=False):
    """IF(x > 0, x + 1, x * 2) with a subgraph and a tensor that nothing needs in front of what is needed."""
    builder = ModelBuilder("to be stripped")
    main = builder.add_subgraph("main")
    unused = builder.add_subgraph("unused")
    unused.add_tensor("nothing", "float32", [1])
    unused.set_inputs()
    unused.set_outputs()
    for name, op in (("then", "ADD"), ("else", "MUL")):
        branch = builder.add_subgraph(name)
        branch.add_tensor("spare", "float32", [4], data=np.zeros(4, np.float32))
        x, y = branch.add_tensor("x", "float32", [1]), branch.add_tensor("y", "float32", [1])
        c = branch.add_tensor("c", "float32", [1], data=np.array([1 if op == "ADD" else 2], np.float32))
        branch.add_operator(op, [x, c], [y])
        branch.set_inputs(x)
        branch.set_outputs(y)
    main.add_tensor("spare", "float32", [1000], data=np.zeros(1000, np.float32))
    x, inner, y = (main.add_tensor(name, "float32", [1]) for name in ("x", "inner", "y"))
    zero, test = main.add_tensor("zero", "float32", [], data=np.float32(0)), main.add_tensor("test", "bool", [1])
    scalar = main.add_tensor("scalar", "bool", [])
    main.add_operator("GREATER", [x, zero], [test])
    main.add_operator("RESHAPE", [test], [scalar], ReshapeOptions(new_shape=np.zeros(0, np.int32)))
    main.add_operator("IF", [scalar, x], [inner], IfOptions(then_subgraph_index=2, else_subgraph_index=3))
    main.add_operator("Atan" if custom else "RELU", [inner], [y])
    main.set_inputs(x)
    main.set_outputs(y)
    builder.add_signature("run", {"x": x}, {"y": y})
    builder.add_signature("double", {"x": 1}, {"y": 2}, subgraph=3)
    # version 1; four subgraphs: one pair, none, none, one pair
    builder.add_metadata("model_control_dependencies", bytes([1, 4, 1, 0, 2, 0, 0, 1, 4, 6]))
    builder.add_metadata("CONVERSION_METADATA", bytes(100))
    builder.add_operator_code("SUB", 1)
    return Model.from_bytes(builder.to_bytes())


def test_stripping_renumbers_what_stays():
    model = branches()
    changed, report = rewrite(model, strip_unused=True)
    root = changed.root
    assert [subgraph.name for subgraph in root.subgraphs] == ["main", "then", "else"]
    conditional = next(node for node in root.subgraphs[0].operators if isinstance(node.builtin_options, IfOptions))
    assert (conditional.builtin_options.then_subgraph_index, conditional.builtin_options.else_subgraph_index) == (1, 2)
    assert [signature.subgraph_index for signature in root.signature_defs] == [0, 2]
    assert changed.metadata("model_control_dependencies").tobytes() == bytes([1, 3, 1, 0, 2, 0, 1, 4, 6])
    assert changed.metadata("CONVERSION_METADATA") is None
    assert report.stripped == {
        "description": 1,
        "metadata": 1,
        "subgraphs": 1,
        "tensors": 3,
        "tensor names": 8,
        "operator codes": 1,
        "buffers": 5,
    }
    assert [tensor.name for tensor in root.subgraphs[0].tensors if tensor.name] == ["x", "y"]
    assert len(changed.to_bytes()) < len(model.to_bytes()) - 4000
    for value in (-3, 5):
        x = np.array([value], np.float32)
        assert_same(run(model, x), run(changed, x))
        for make in (Interpreter, _litert):
            runner = make(model_content=changed.to_bytes()).get_signature_runner("double")
            np.testing.assert_array_equal(runner(x=x)["y"], x * 2)
    assert model.root == branches().root  # the model that was given is as it was


def test_what_a_custom_op_might_refer_to_stays():
    changed, report = rewrite(branches(custom=True), strip_unused=True)
    assert len(changed.root.subgraphs) == 4
    assert len(changed.root.subgraphs[0].tensors) == 7
    assert "subgraphs" not in report.stripped


def test_control_dependencies_that_cannot_be_kept_are_refused():
    model = branches()
    entry = next(entry for entry in model.root.metadata if entry.name == "model_control_dependencies")
    model.root.buffers[entry.buffer] = tables.Buffer(data=np.array([2, 0], np.uint8))
    with pytest.raises(ModelError, match="model_control_dependencies"):
        rewrite(model, strip_unused=True)
    assert rewrite(model)[1].stripped == {}


def test_scales_of_blocks_follow_their_tensor():
    builder = ModelBuilder()
    main = builder.add_subgraph()
    main.add_tensor("spare", "float32", [1])
    scales = main.add_tensor("scales", "float16", [2, 1], data=np.ones((2, 1), np.float16))
    details = tables.BlockwiseQuantization(scales=scales, zero_points=-1, block_size=32)
    x, y = main.add_tensor("x", "float32", [1, 32]), main.add_tensor("y", "float32", [1, 2])
    weights = main.add_tensor(
        "w", "int8", [2, 32], data=np.ones((2, 32), np.int8), quantization=tables.QuantizationParameters(details=details)
    )
    main.add_operator("FULLY_CONNECTED", [x, weights, -1], [y])
    main.set_inputs(x)
    main.set_outputs(y)
    root = rewrite(Model.from_bytes(builder.to_bytes()), lowest_versions=False, strip_unused=True)[0].root
    [tensors] = [subgraph.tensors for subgraph in root.subgraphs]
    assert len(tensors) == 4
    assert tensors[3].quantization.details.scales == 0
    assert tensors[3].quantization.details.zero_points == -1
    assert root.subgraphs[0].operators[0].inputs.tolist() == [1, 3, -1]


def test_an_archive_behind_the_model_goes_only_when_stripped(digits):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("labels.txt", "zero\none\n")
    model = Model.from_bytes(digits.read_bytes() + archive.getvalue())
    kept = rewrite(model)[0].to_bytes()
    assert zipfile.ZipFile(io.BytesIO(kept)).read("labels.txt") == b"zero\none\n"
    stripped, report = rewrite(model, strip_unused=True)
    assert report.stripped["attached archives"] == 1
    assert b"labels.txt" not in stripped.to_bytes()


# Another batch size ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [3, -1])
def test_a_batch_gives_what_its_examples_give(oplet, digits, tmp_path, batch):
    out = tmp_path / "out.tflite"
    report = json.loads(oplet("rewrite", digits, "-o", out, f"--batch={batch}", "--json").out)
    assert report["batch_checked"]
    assert [change.split(" of ")[0] for change in report["batch_changes"]] == ["node 5 (RESHAPE)"]
    x = images(3)
    singles = [run(digits.read_bytes(), x[i : i + 1]) for i in range(3)]
    stacked = [[np.concatenate([single[make][0] for single in singles])] for make in range(2)]
    assert_same(stacked, run(out.read_bytes(), x))
    for details in (
        *_litert(model_content=out.read_bytes()).get_input_details(),
        *_litert(model_content=out.read_bytes()).get_output_details(),
    ):
        assert (details["shape"][0], details["shape_signature"][0]) == ((3, 3) if batch > 0 else (1, -1))


def test_the_batch_size_can_become_smaller_again(digits):
    three = rewrite(Model.open(digits), batch=3)[0]
    one = rewrite(Model.from_bytes(three.to_bytes()), batch=1)[0]
    x = images(1)
    assert_same(run(digits.read_bytes(), x), run(one, x))
    assert rewrite(one, batch=1)[1].batch_changes == []


def small_model(op, shape, out, options=None, *, constants=(), version=1):
    """x of `shape` and constants in, one node."""
    builder = ModelBuilder()
    main = builder.add_subgraph()
    x, y = main.add_tensor("x", "float32", shape), main.add_tensor("y", "float32", out)
    given = [main.add_tensor(f"c{i}", value.dtype, value.shape, data=value) for i, value in enumerate(constants)]
    inputs = [*given, x] if op == "TRANSPOSE_CONV" else [x, *given]
    main.add_operator(op, inputs, [y], options, version=version)
    main.set_inputs(x)
    main.set_outputs(y)
    return Model.from_bytes(builder.to_bytes())


def ints(*values):
    return np.array(values, np.int32)


FILTERS = np.arange(4, dtype=np.float32).reshape(1, 2, 2, 1)

FOLLOWING = {
    "reshape by its options": small_model("RESHAPE", [2, 6], [2, 3, 2], ReshapeOptions(new_shape=ints(2, 3, 2))),
    "reshape with a free dimension elsewhere": small_model("RESHAPE", [1, 6], [1, 3, 2], constants=[ints(1, -1, 2)]),
    "reshape that joins the batch with others": small_model("RESHAPE", [1, 3, 2], [3, 2], constants=[ints(3, 2)]),
    "slice": small_model("SLICE", [2, 4], [2, 2], constants=[ints(0, 1), ints(2, 2)]),
    "strided slice": small_model("STRIDED_SLICE", [2, 4], [2, 2], constants=[ints(0, 1), ints(2, 3), ints(1, 1)]),
    "broadcast": small_model("BROADCAST_TO", [1, 1, 2], [1, 3, 2], constants=[ints(1, 3, 2)], version=2),
    "transposed convolution": small_model(
        "TRANSPOSE_CONV",
        [1, 3, 3, 1],
        [1, 6, 6, 1],
        TransposeConvOptions(stride_w=2, stride_h=2),
        constants=[ints(1, 6, 6, 1), FILTERS],
    ),
    "a class token": small_model(
        "CONCATENATION", [1, 2, 3], [1, 3, 3], ConcatenationOptions(axis=1), constants=[np.ones((1, 1, 3), np.float32)]
    ),
    "a transpose written as a reshape": small_model("RESHAPE", [1, 4, 3], [4, 1, 3], constants=[ints(4, 1, 3)]),
}
#: What names a batch size that cannot be left out.
CLOSED = {"broadcast", "transposed convolution", "a class token"}


@pytest.mark.parametrize("name", FOLLOWING)
@pytest.mark.parametrize("batch", [4, -1])
def test_constants_follow_the_batch_size(name, batch):
    model = FOLLOWING[name]
    if batch < 0 and name in CLOSED:
        with pytest.raises(ModelError, match="must hold a batch size"):
            rewrite(model, batch=batch)
        return
    changed, report = rewrite(model, batch=batch)
    assert report.batch_checked
    old = model.root.subgraphs[0].tensors[0].shape.tolist()
    x = np.random.default_rng(0).random((4, *old[1:])).astype(np.float32)
    singles = [run(model, x[i : i + old[0]]) for i in range(0, 4, old[0])]
    now = run(changed, x)
    for make in range(2):
        parts = [single[make][0] for single in singles]
        shapes = zip(parts[0].shape, now[make][0].shape)
        axis = next(axis for axis, (a, b) in enumerate(shapes) if a != b)
        np.testing.assert_allclose(now[make][0], np.concatenate(parts, axis), rtol=1e-6)


def test_a_constant_that_another_node_needs_stays():
    builder = ModelBuilder()
    main = builder.add_subgraph()
    x, y, z = (
        main.add_tensor("x", "float32", [1, 4]),
        main.add_tensor("y", "float32", [1, 2, 2]),
        main.add_tensor("z", "float32", [1, 2, 2]),
    )
    shape = main.add_tensor("shape", "int32", [3], data=ints(1, 2, 2))
    constant = main.add_tensor("c", "float32", [4], data=np.arange(4, dtype=np.float32))
    middle = main.add_tensor("m", "float32", [1, 2, 2])
    main.add_operator("RESHAPE", [x, shape], [y])
    main.add_operator("RESHAPE", [constant, shape], [middle])
    main.add_operator("ADD", [y, middle], [z])
    main.set_inputs(x)
    main.set_outputs(z)
    changed, report = rewrite(Model.from_bytes(builder.to_bytes()), batch=3)
    assert len(report.batch_changes) == 1
    x_value = np.random.default_rng(0).random((3, 4)).astype(np.float32)
    for [got] in run(changed, x_value):
        np.testing.assert_allclose(got, x_value.reshape(3, 2, 2) + np.arange(4).reshape(1, 2, 2))


REFUSED = {
    "node 0 (MEAN)": small_model("MEAN", [1, 4], [4], ReducerOptions(), constants=[ints(0)]),
    "node 0 (CUMSUM)": small_model("CUMSUM", [1, 4], [1, 4], constants=[ints(0)[0]]),
    "node 0 (RESHAPE)": small_model("RESHAPE", [2, 3], [3, 2], constants=[ints(3, 2)]),
    "no input has a dimension": small_model("NEG", [], []),
    "an input is empty": small_model("NEG", [0, 2], [0, 2]),
}


@pytest.mark.parametrize("words", REFUSED)
def test_a_batch_size_that_cannot_change_is_refused_by_name(oplet, tmp_path, words):
    path = tmp_path / "m.tflite"
    path.write_bytes(REFUSED[words].to_bytes())
    one_line(oplet("rewrite", path, "-o", tmp_path / "out.tflite", "--batch", "3"), words, "cannot become 3")
    assert not (tmp_path / "out.tflite").exists()
