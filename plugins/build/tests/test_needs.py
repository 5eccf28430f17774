"""Which ops models need."""

from __future__ import annotations

import numpy as np
import pytest

from oplet import BuiltinOperator, Interpreter, Model, ModelBuilder, MutableOpResolver, TensorType
from oplet.errors import ModelError, OpNotFoundError, UnresolvedOpError
from oplet.schema.options import AddOptions, IfOptions
from oplet_build.selection.needs import SelectionError, needs_of
from oplet_testing import elementwise, invoke


def chain(subgraph, *ops, type="float32"):
    """One node after another; each op is (name, version)."""
    tensors = [subgraph.add_tensor(f"t{i}", type, [2]) for i in range(len(ops) + 1)]
    for i, (name, version) in enumerate(ops):
        subgraph.add_operator(name, [tensors[i]], [tensors[i + 1]], version=version)
    subgraph.set_inputs(tensors[0])
    subgraph.set_outputs(tensors[-1])


def model(*subgraphs, custom_options=None):
    builder = ModelBuilder()
    for ops in subgraphs:
        chain(builder.add_subgraph(), *ops)
    made = Model.from_bytes(builder.to_bytes())
    if custom_options is not None:
        made.root.subgraphs[0].operators[0].custom_options = np.frombuffer(custom_options, np.uint8)
    return made


def names(needs):
    return [need.name for need in needs]


def test_versions_and_types_of_several_models_come_together_sorted_by_name():
    first = model([("Twice", 2), ("ABS", 1), ("Twice", 1)])
    builder = ModelBuilder()
    chain(builder.add_subgraph(), ("ABS", 3), type="int16")
    second = Model.from_bytes(builder.to_bytes())
    first.name, second.name = "first", "second"
    ops, twice = needs_of([first, second])
    assert (ops.name, ops.custom, ops.versions, ops.models, ops.op) == (
        "ABS",
        False,
        (1, 3),
        ("first", "second"),
        BuiltinOperator.ABS,
    )
    assert ops.types == (TensorType.FLOAT32, TensorType.INT16)
    assert (twice.name, twice.custom, twice.versions, twice.models, twice.op) == ("Twice", True, (1, 2), ("first",), "Twice")


def test_what_nothing_runs_is_left_out():
    made = model([("ABS", 1)], [("EXP", 1)], [("LOG", 1)])
    made.root.subgraphs[1].operators[0].builtin_options = IfOptions(then_subgraph_index=2, else_subgraph_index=2)
    assert names(needs_of([made])) == ["ABS"]
    assert names(needs_of([made], all_codes=True)) == ["ABS", "EXP", "LOG"]


def test_what_signatures_and_calls_reach_is_kept():
    made = model([("ABS", 1)], [("EXP", 1)], [("LOG", 1)], [("NEG", 1)])
    made.root.subgraphs[0].operators[0].builtin_options = IfOptions(then_subgraph_index=2, else_subgraph_index=3)
    assert names(needs_of([made])) == ["ABS", "LOG", "NEG"]


def test_a_custom_op_with_options_may_call_any_subgraph():
    assert names(needs_of([model([("Twice", 1)], [("EXP", 1)])])) == ["Twice"]
    assert names(needs_of([model([("Twice", 1)], [("EXP", 1)], custom_options=b"\1")])) == ["EXP", "Twice"]


def test_operator_codes_that_no_node_uses_count_only_when_asked_for():
    made = model([("ABS", 1), ("EXP", 4)])
    operators = made.root.subgraphs[0].operators
    operators[1].opcode_index = operators[0].opcode_index
    assert names(needs_of([made])) == ["ABS"]
    need = needs_of([made], all_codes=True)[1]
    assert (need.name, need.versions, need.types) == ("EXP", (4,), ())


@pytest.mark.parametrize(
    ("text", "name", "custom", "versions"),
    [
        ("CONV_2D", "CONV_2D", False, ()),
        ("CONV_2D:1-5", "CONV_2D", False, (1, 2, 3, 4, 5)),
        ("CONV_2D:3,1,1-2", "CONV_2D", False, (1, 2, 3)),
        ("Atan", "Atan", True, ()),
        ("Atan:2", "Atan", True, (2,)),
        ("Space>Op", "Space>Op", True, ()),
        ("a:b", "a:b", True, ()),
        ("a:b:2", "a:b", True, (2,)),
    ],
)
def test_ops_are_asked_for_by_name(text, name, custom, versions):
    [need] = needs_of([], ops=[text])
    assert (need.name, need.custom, need.versions, need.types, need.models) == (name, custom, versions, (), ())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "names no op"),
        (":1", "names no op"),
        ("CUSTOM", "names no op"),
        ("CONV_2D:", "no versions after the colon"),
        ("CONV_2D:x", "no versions after the colon"),
        ("CONV_2D:0", "versions go from 1"),
        ("CONV_2D:3-2", "'3-2'"),
        ("CONV_2D:1-4000000000", "versions go from 1"),
        ("CONV_2D:²", "no versions after the colon"),
        ("CONV2D", "called CONV_2D"),
        ("conv_2d", "called CONV_2D"),
    ],
)
def test_texts_that_are_no_ops_are_refused(text, words):
    with pytest.raises(SelectionError, match=words):
        needs_of([], ops=[text])


def test_an_op_of_a_model_and_by_name_has_the_versions_of_both_and_any_type():
    [need] = needs_of([model([("ABS", 2)])], ops=["ABS:1"])
    assert (need.versions, need.types) == ((1, 2), ())
    assert needs_of([model([("ABS", 2)])], ops=["ABS"])[0].versions == ()


def broken(change):
    made = model([("ABS", 1)])
    change(made.root)
    return made


@pytest.mark.parametrize(
    "change",
    [
        lambda root: setattr(root, "subgraphs", None),
        lambda root: setattr(root, "operator_codes", None),
        lambda root: setattr(root.subgraphs[0].operators[0], "opcode_index", 7),
        lambda root: setattr(root.subgraphs[0].operators[0], "inputs", np.array([99], np.int32)),
        lambda root: setattr(root.operator_codes[0], "builtin_code", 4711),
        lambda root: setattr(root.operator_codes[0], "version", 0),
        lambda root: setattr(root.operator_codes[0], "version", -3),
        lambda root: setattr(root.subgraphs[0].tensors[0], "type", 77),
    ],
)
@pytest.mark.parametrize("all_codes", [False, True])
def test_models_that_break_a_rule_are_refused(change, all_codes):
    with pytest.raises(ModelError):
        needs_of([broken(change)], all_codes=all_codes)


def test_a_file_that_is_no_model_is_refused(tmp_path):
    path = tmp_path / "no.tflite"
    path.write_bytes(b"no model at all")
    with pytest.raises(ModelError):
        needs_of([path])


@pytest.mark.parametrize("dead", ["EXP", "Foreign"])
def test_a_model_runs_though_a_subgraph_that_nothing_calls_has_no_kernels(dead):
    resolver = MutableOpResolver()
    resolver.add_custom("Twice", elementwise(lambda x: x * 2))
    interpreter = Interpreter(model_content=model([("Twice", 1)], [(dead, 1)]).to_bytes(), op_resolver=resolver, plugins=[])
    [found] = invoke(interpreter, np.array([1, 2], np.float32))
    assert found.tolist() == [2, 4]


@pytest.mark.parametrize(("name", "cls"), [("EXP", OpNotFoundError), ("Foreign", UnresolvedOpError)])
def test_a_subgraph_that_is_called_needs_its_kernels(name, cls):
    resolver = MutableOpResolver()
    resolver.add_builtin("IF", elementwise(lambda x: x * 2))
    made = model([("IF", 1)], [(name, 1)])
    made.root.subgraphs[0].operators[0].builtin_options = IfOptions(then_subgraph_index=1, else_subgraph_index=1)
    with pytest.raises(cls, match=name):
        Interpreter(model_content=made.to_bytes(), op_resolver=resolver, plugins=[]).allocate_tensors()


def test_an_omitted_input_has_no_type():
    builder = ModelBuilder()
    main = builder.add_subgraph()
    x, y = main.add_tensor("x", "int8", [2]), main.add_tensor("y", "int8", [2])
    main.add_operator("ADD", [x, -1], [y], AddOptions())
    main.set_inputs(x)
    main.set_outputs(y)
    assert needs_of([Model.from_bytes(builder.to_bytes())])[0].types == (TensorType.INT8,)
