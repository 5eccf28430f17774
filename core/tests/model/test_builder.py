"""The writer: what it writes reads back, and a mistake is refused where it is made, by name."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from flatbuffers import flexbuffers
from hypothesis import given
from hypothesis import strategies as st

from oplet.builder import (
    BlockwiseQuantization,
    BuiltinOperator,
    CustomQuantization,
    DimensionType,
    ModelBuilder,
    MultiAxisQuantization,
    QuantizationParameters,
    SubgraphBuilder,
    TensorType,
    VariantSubType,
    options_class,
    pack_flexbuffer,
    pack_strings,
    pack_values,
    sparsify,
)
from oplet.errors import ModelError
from oplet.model.model import Model
from oplet.model.verify.verifier import verify
from oplet.runtime.loading import load_tensors
from oplet.runtime.memory.accounting import Limits, MemoryAccount
from oplet.schema import tables
from oplet.schema.options import AddOptions, Conv2DOptions, DepthwiseConv2DOptions, SubOptions
from oplet.schema.stablehlo_options import StablehloSliceOptions


def graph(**arguments: Any) -> tuple[ModelBuilder, SubgraphBuilder]:
    """A model that says what every model must: x in, y out, which is a variable so that it has a value without a node."""
    builder = ModelBuilder(**arguments)
    main = builder.add_subgraph()
    main.set_inputs(main.add_tensor("x", "float32", [4]))
    main.set_outputs(main.add_tensor("y", "float32", [4], is_variable=True))
    return builder, main


def tensor(*arguments: Any, **keywords: Any) -> tables.Tensor:
    """A tensor as it reads back."""
    builder, main = graph()
    index = main.add_tensor(*arguments, **keywords)
    model = builder.build()
    verify(model)
    return (model.root.subgraphs or [])[0].tensors[index]  # type: ignore[index]


def codes(builder: ModelBuilder) -> list[tuple[str, int]]:
    model = builder.build()
    return [model.op_of(op)[1:] for subgraph in model.root.subgraphs or [] for op in subgraph.operators or []]


VALUES: list[tuple[TensorType, Any]] = [
    (TensorType.FLOAT32, [[1.5, -2]]),
    (TensorType.FLOAT16, [[1.5, -2]]),
    (TensorType.FLOAT64, [[1.5, 1e300]]),
    (TensorType.BFLOAT16, [[1.5, -2]]),
    (TensorType.FLOAT8_E4M3FN, [[1.5, -2]]),
    (TensorType.FLOAT8_E5M2, [[1.5, -2]]),
    (TensorType.COMPLEX64, [[1 + 2j, -2]]),
    (TensorType.COMPLEX128, [[1 + 2j, -2]]),
    (TensorType.BOOL, [[True, False]]),
    (TensorType.INT8, [[-128, 127]]),
    (TensorType.UINT8, [[0, 255]]),
    (TensorType.INT16, [[-(2**15), 1]]),
    (TensorType.UINT16, [[2**16 - 1, 1]]),
    (TensorType.INT32, [[-(2**31), 1]]),
    (TensorType.UINT32, [[2**32 - 1, 1]]),
    (TensorType.INT64, [[-(2**63), 1]]),
    (TensorType.UINT64, [[2**64 - 1, 1]]),
    (TensorType.INT4, [[-8, 7, 3]]),
    (TensorType.UINT4, [[0, 15, 3]]),
    (TensorType.INT2, [[-2, 1, 0, -1, 1]]),
    (TensorType.STRING, [["a", "", "\N{SNOWMAN}"]]),
]


@pytest.mark.parametrize(("type", "values"), VALUES, ids=lambda v: v.name if isinstance(v, TensorType) else "")
def test_a_constant_of_every_type_reads_back(type: TensorType, values: Any) -> None:
    builder, main = graph()
    shape = np.shape(values)
    index = main.add_tensor("c", type, shape, data=values)
    model = builder.build()
    verify(model)
    found = load_tensors(model, (model.root.subgraphs or [])[0], MemoryAccount(Limits(), model))[index]
    assert found.type is type
    expected = [[v.encode() for v in values[0]]] if type is TensorType.STRING else values
    assert found.data.tolist() == expected


def test_packed_values_put_the_low_bits_first() -> None:
    assert pack_values([1, 2, -1], TensorType.INT4) == bytes([0x21, 0x0F])
    assert pack_values([1, 0, -2, -1, 1], TensorType.INT2) == bytes([0b11_10_00_01, 0b01])
    assert pack_strings(["a", b"bc"]) == np.array([2, 16, 17, 19], "<i4").tobytes() + b"abc"
    assert pack_values(np.array([1], ml_dtypes.bfloat16), TensorType.BFLOAT16) == b"\x80\x3f"


@pytest.mark.parametrize(
    ("type", "data", "reason"),
    [
        ("float32", [1, 2, 3], r"'c'.* takes 2 values for the shape \[2\], its data have 3"),
        ("float32", b"\0" * 7, "takes 8 bytes .*its data have 7"),
        ("int8", [1, 128], "value 128 does not fit into INT8"),
        ("int8", np.array([0.5, 1]), "value 0.5 does not fit into INT8"),
        ("uint8", [-1, 1], "value -1 does not fit into UINT8"),
        ("float32", [1j, 1], "complex128 do not fit into FLOAT32"),
        (TensorType.INT4, [7, 8], "value 8 does not fit into INT4, which holds -8 to 7"),
        (TensorType.UINT4, [-1, 8], "value -1 does not fit into UINT4"),
        (TensorType.INT2, [-2, -3], "value -3 does not fit into INT2"),
        (TensorType.STRING, ["a"], "takes 2 values for the shape .*have 1"),
        (TensorType.STRING, b"\1\0\0\0", "its bytes hold 1 strings"),
        (TensorType.STRING, [1.5, None], "cannot hold its data"),
        (TensorType.RESOURCE, [1, 2], "RESOURCE cannot be a constant"),
        ("float32", ["a", "b"], "'c'"),
    ],
)
def test_data_that_do_not_fit_are_refused(type: Any, data: Any, reason: str) -> None:
    _, main = graph()
    with pytest.raises(ModelError, match=reason):
        main.add_tensor("c", type, [2], data=data)
    assert len(main.table.tensors or []) == 2  # nothing is left of the attempt


def test_a_free_dimension_is_1_and_minus_1_in_the_signature() -> None:
    for free in (None, -1):
        read = tensor("t", "float32", [free, 3])
        assert read.shape.tolist() == [1, 3]  # type: ignore[union-attr]
        assert read.shape_signature.tolist() == [-1, 3]  # type: ignore[union-attr]
    read = tensor("t", "float32", [7, 3], shape_signature=[-1, 3])
    assert read.shape.tolist() == [7, 3]  # type: ignore[union-attr]
    assert tensor("t", "float32", [1, 3]).shape_signature is None


def test_a_scalar_has_a_rank_and_an_unknown_shape_has_none() -> None:
    assert tensor("t", "float32", []).has_rank
    assert not tensor("t", "float32", None).has_rank


def test_variables_and_variants() -> None:
    assert tensor("t", "float32", [2], is_variable=True).is_variable
    held = VariantSubType(shape=np.array([2], np.int32), type=TensorType.INT32, has_rank=True)
    assert tensor("t", TensorType.VARIANT, [], variant_tensors=[held]).variant_tensors == [held]


QUANTIZED: list[tuple[dict[str, Any], QuantizationParameters]] = [
    ({"scale": 0.5}, QuantizationParameters(scale=np.float32([0.5]), zero_point=np.int64([0]))),
    ({"scale": 0.5, "zero_point": -3}, QuantizationParameters(scale=np.float32([0.5]), zero_point=np.int64([-3]))),
    (
        {"scale": [0.5, 1, 2], "quantized_dimension": 1},
        QuantizationParameters(scale=np.float32([0.5, 1, 2]), zero_point=np.int64([0, 0, 0]), quantized_dimension=1),
    ),
    ({"minimum": -1, "maximum": [1]}, QuantizationParameters(min=np.float32([-1]), max=np.float32([1]))),
    (
        {"details": BlockwiseQuantization(scales=0, zero_points=-1, block_size=32)},
        QuantizationParameters(details=BlockwiseQuantization(scales=0, zero_points=-1, block_size=32)),
    ),
    (
        {"details": MultiAxisQuantization(scales=0, zero_points=1, quantized_dimensions=np.int32([0, 1]))},
        QuantizationParameters(details=MultiAxisQuantization(scales=0, zero_points=1, quantized_dimensions=np.int32([0, 1]))),
    ),
    (
        {"details": CustomQuantization(custom=np.uint8([1, 2]))},
        QuantizationParameters(details=CustomQuantization(custom=np.uint8([1, 2]))),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("given", "expected"), QUANTIZED)
def test_quantization_of_every_kind_reads_back(given: dict[str, Any], expected: QuantizationParameters) -> None:
    assert tensor("t", "int8", [2, 3], **given).quantization == expected
    assert tensor("t", "int8", [2, 3], quantization=expected).quantization == expected


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"scale": [1, 2]}, "must have one scale, or 3 for dimension 0 of its shape .*but got 2"),
        ({"scale": [1, 2, 3], "zero_point": [0]}, "3 scales and 1 zero points"),
        ({"scale": [1, 2, 3], "quantized_dimension": 2}, r"along dimension 2, its shape \[3, 2\] has 2"),
        ({"zero_point": 3}, "0 scales and 1 zero points"),
        ({"scale": -1}, "a scale of -1.0"),
        ({"scale": float("nan")}, "a scale of nan"),
        ({"scale": 1, "quantization": QuantizationParameters()}, "give one or the other"),
        ({"details": BlockwiseQuantization(scales=9)}, "its scales in tensor 9"),
        ({"details": AddOptions()}, "AddOptions as its quantization details"),
    ],
)
def test_a_wrong_quantization_is_refused(given: dict[str, Any], reason: str) -> None:
    _, main = graph()
    with pytest.raises(ModelError, match=f"Tensor 2 \\('t'\\) of subgraph 0 \\('main'\\).*{reason}"):
        main.add_tensor("t", "int8", [3, 2], **given)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"shape": [-2]}, "dimension of -2"),
        ({"shape": [2**31]}, "dimension of 2147483648"),
        ({"shape": [2, -1], "shape_signature": [-1, -1]}, "one says it"),
        ({"shape": [2, 2], "shape_signature": [-1]}, "signature of another rank"),
        ({"shape": [2], "data": [1, 2], "buffer": 0}, "data and buffer"),
        ({"shape": [2], "data": [1, 2], "is_variable": True}, "and is a variable"),
        ({"shape": [2], "buffer": 7}, "refers to buffer 7; there are 1"),
        ({"shape": [2], "external_buffer": 1}, "external buffer 1, which was not added"),
        ({"shape": [2], "type": "datetime64[s]"}, "no tensor type"),
    ],
)
def test_a_wrong_tensor_is_refused(given: dict[str, Any], reason: str) -> None:
    _, main = graph()
    with pytest.raises(ModelError, match=reason):
        main.add_tensor("t", **{"type": "float32", **given})


def test_equal_constants_share_a_buffer_on_demand() -> None:
    builder, main = graph()
    shared = builder.add_buffer(np.arange(4, dtype=np.float32).tobytes())
    for name in ("a", "b"):
        main.add_tensor(name, "float32", [2, 2], buffer=shared)
    with pytest.raises(ModelError, match="takes 20 bytes .* its buffer has 16"):
        main.add_tensor("c", "float32", [5], buffer=shared)
    model = builder.build()
    verify(model)
    a, b = ((model.root.subgraphs or [])[0].tensors or [])[2:]
    assert a.buffer == b.buffer == shared
    assert len(model.root.buffers or []) == 2


def test_a_node_without_a_version_gets_the_lowest_that_it_needs() -> None:
    builder, main = graph()
    x, w, y = (main.add_tensor(n, "float32", [1, 4, 4, 1]) for n in "xwy")
    options = DepthwiseConv2DOptions(stride_w=1, stride_h=1, depth_multiplier=1)
    main.add_operator("DEPTHWISE_CONV_2D", [x, w], [y], options)
    assert codes(builder) == [("DEPTHWISE_CONV_2D", 1)]
    options.dilation_w_factor = 2  # the version is settled when the model is written
    assert codes(builder) == [("DEPTHWISE_CONV_2D", 2)]
    assert len(builder.root.operator_codes or []) == 1


def test_an_explicit_version_is_kept_and_custom_ops_begin_at_1() -> None:
    builder, main = graph()
    made = [main.add_tensor(f"t{i}", "float32", [4]) for i in range(4)]
    main.add_operator("RELU", [0], [made[0]], version=7)
    main.add_operator("Foo", [0], [made[1]])
    main.add_operator("Foo", [0], [made[2]], version=3)
    main.add_operator(BuiltinOperator.RELU, [0], [made[3]])
    assert codes(builder) == [("RELU", 7), ("Foo", 1), ("Foo", 3), ("RELU", 1)]


def test_operators_past_127_are_marked_in_the_old_field() -> None:
    builder, main = graph()
    main.add_operator("GELU", [0], [1])
    [code] = builder.build().root.operator_codes or []
    assert (code.deprecated_builtin_code, code.builtin_code) == (127, BuiltinOperator.GELU)


def test_the_minimum_runtime_is_written_and_can_be_left_out() -> None:
    builder, main = graph()
    main.add_operator("RELU", [0], [1])
    assert bytes(builder.build().metadata("min_runtime_version")) == b"1.5.0".ljust(16, b"\0")  # type: ignore[arg-type]
    assert builder.to_bytes() == builder.to_bytes()
    assert [entry.name for entry in builder.build().root.metadata or []] == ["min_runtime_version"]
    builder, main = graph(minimum_runtime=False)
    main.add_operator("RELU", [0], [1])
    assert builder.build().root.metadata is None


def test_custom_ops_bring_their_first_releases() -> None:
    builder, main = graph(runtime_versions={("Foo", 2): "2.99.0"})
    main.add_operator("Foo", [0], [1], version=2)
    assert bytes(builder.build().metadata("min_runtime_version")).rstrip(b"\0") == b"2.99.0"  # type: ignore[arg-type]


def test_custom_options_are_bytes_or_become_flexbuffers() -> None:
    builder, main = graph()
    given = {"axis": np.int64(1), "sizes": np.array([1.5, 2]), "name": "n", "deep": {"on": True}, "none": None, "raw": b"\1"}
    for options in (b"abc", given, [1, 2], {}):
        main.add_operator("Foo", [0], [main.add_tensor("t", "float32", [4])], custom_options=options)
    model = builder.build()
    raw = [model.custom_options(op) for op in (model.root.subgraphs or [])[0].operators or []]
    assert raw[0] == b"abc"
    assert flexbuffers.Loads(raw[1]) == {
        "axis": 1, "sizes": [1.5, 2.0], "name": "n", "deep": {"on": True}, "none": None, "raw": b"\1",
    }  # fmt: skip
    assert flexbuffers.Loads(raw[2]) == [1, 2]
    assert flexbuffers.Loads(raw[3]) == {}
    for wrong in ({1: 2}, {"a": object()}):
        with pytest.raises(ModelError, match="cannot be written as FlexBuffers"):
            pack_flexbuffer(wrong)


def test_options_of_both_unions_intermediates_and_mutated_inputs() -> None:
    builder, main = graph()
    slice_options = StablehloSliceOptions(start_indices=np.int64([0]), limit_indices=np.int64([4]), strides=np.int64([1]))
    z = main.add_tensor("z", "float32", [4])
    main.add_operator("STABLEHLO_SLICE", [0], [1], slice_options)
    main.add_operator("ADD", [0, None], [z], AddOptions(), intermediates=[0, -1], mutating_variable_inputs=[False, True])
    first, second = (builder.build().root.subgraphs or [])[0].operators or []
    assert first.builtin_options_2 == slice_options
    assert second.builtin_options == AddOptions()
    assert second.inputs.tolist() == [0, -1]  # type: ignore[union-attr]
    assert second.intermediates.tolist() == [0, -1]  # type: ignore[union-attr]
    assert second.mutating_variable_inputs.tolist() == [False, True]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("arguments", "given", "reason"),
    [
        (("ADD", [0, 9], [1]), {}, r"Node 0 \(ADD\) of subgraph 0 \('main'\) has input 1 at tensor 9; there are 2 tensors"),
        (("ADD", [0, 0], [-1]), {}, "output 0 at tensor -1"),
        (("ADD", [0, -2], [1]), {}, "input 1 at tensor -2"),
        (("ADD", [0, 0], [1], SubOptions()), {}, "takes AddOptions, not SubOptions"),
        (("RELU", [0], [1], AddOptions()), {}, "takes no options, not AddOptions"),
        (("ADD", [0, 0], [1], QuantizationParameters()), {}, "QuantizationParameters is not an options table"),
        (("Foo", [0], [1], AddOptions()), {}, r"\(Foo\).*takes no options"),
        (("ADD", [0, 0], [1]), {"custom_options": b"a"}, "only custom ops have custom options"),
        (("ADD", [0, 0], [1]), {"intermediates": [5]}, "intermediate 0 at tensor 5"),
        (("ADD", [0, 0], [1]), {"mutating_variable_inputs": [True]}, "of 1 inputs whether it writes them, and has 2"),
        (("ADD", [0, 0], [1]), {"version": 0}, "version 0; versions begin at 1"),
        (("CONV2D", [0], [1]), {}, "no operator 'CONV2D'; did you mean 'CONV_2D'"),
        (("relu", [0], [1]), {}, "did you mean 'RELU'"),
        (("", [0], [1]), {}, "needs a name"),
        ((BuiltinOperator.CUSTOM, [0], [1]), {}, "added by its name"),
    ],
)
def test_a_wrong_node_is_refused(arguments: tuple[Any, ...], given: dict[str, Any], reason: str) -> None:
    _, main = graph()
    with pytest.raises(ModelError, match=reason):
        main.add_operator(*arguments, **given)
    assert main.table.operators == []


def test_names_that_look_like_builtins_can_be_custom_ops() -> None:
    builder, main = graph()
    main.add_operator("CONV2D", [0], [1], custom=True)
    assert codes(builder) == [("CONV2D", 1)]
    assert builder.build().root.operator_codes[0].builtin_code is BuiltinOperator.CUSTOM  # type: ignore[index]


def test_a_tensor_is_written_once() -> None:
    _, main = graph()
    main.add_operator("RELU", [0], [1])
    with pytest.raises(ModelError, match=r"Node 1 \(TANH\).* writes tensor 1 \('y'\), which Node 0 \(RELU\).* writes already"):
        main.add_operator("TANH", [0], [1])


def test_every_operator_with_options_knows_its_table() -> None:
    assert options_class(BuiltinOperator.CONV_2D) is Conv2DOptions
    assert options_class(BuiltinOperator.RELU) is None
    assert {options_class(BuiltinOperator[op]).__name__ for op in ("MEAN", "SUM")} == {"ReducerOptions"}  # type: ignore[union-attr]


def test_signatures_name_tensors() -> None:
    builder, main = graph()
    other = builder.add_subgraph("other")
    other.set_inputs()
    other.set_outputs(other.add_tensor("c", "int32", [], data=3))
    builder.add_signature("serving_default", {"x": 0}, {"y": 1})
    builder.add_signature("other", {}, {"c": 0}, other)
    model = builder.build()
    verify(model)
    first, second = model.root.signature_defs or []
    assert [(m.name, m.tensor_index) for m in [*(first.inputs or []), *(first.outputs or [])]] == [("x", 0), ("y", 1)]
    assert (second.signature_key, second.subgraph_index) == ("other", 1)
    assert main.index == 0


@pytest.mark.parametrize(
    ("attempt", "reason"),
    [
        (lambda b: b.add_signature("s", {}, {}), "has a signature 's' already"),
        (lambda b: b.add_signature("t", {"x": 2}, {}), "Signature 't' has the input 'x' at tensor 2; its subgraph has 2"),
        (lambda b: b.add_signature("t", {}, {"y": -1}), "output 'y' at tensor -1"),
        (lambda b: b.add_signature("t", {}, {}, 1), "refers to subgraph 1; there are 1"),
        (lambda b: b.add_metadata("m", b""), "has metadata 'm' already"),
        (lambda b: b.subgraphs[0].set_inputs(5), "Subgraph 0 .*has input 0 at tensor 5"),
        (lambda b: b.add_external_buffer("../w", b""), "'../w', which would not lie in the model's own folder.*leads upwards"),
        (lambda b: b.add_external_buffer("/w", b""), "would not lie.*is absolute"),
    ],
)
def test_a_wrong_part_is_refused(attempt: Callable[[ModelBuilder], None], reason: str) -> None:
    builder, _ = graph()
    builder.add_signature("s", {"x": 0}, {"y": 1})
    builder.add_metadata("m", b"1")
    with pytest.raises(ModelError, match=reason):
        attempt(builder)


def test_a_model_says_its_inputs_and_outputs() -> None:
    builder = ModelBuilder()
    with pytest.raises(ModelError, match="no subgraph"):
        builder.to_bytes()
    main = builder.add_subgraph("main")
    main.set_outputs(main.add_tensor("y", "float32", [1]))
    with pytest.raises(ModelError, match=r"The inputs of subgraph 0 \('main'\) are not set; call set_inputs"):
        builder.to_bytes()
    main.set_inputs()
    builder.to_bytes()


def test_external_buffers_lie_in_files_beside_the_model(tmp_path: Path) -> None:
    builder, main = graph()
    first, second = (builder.add_external_buffer("weights/w.bin", np.full(3, i, np.float32)) for i in (1, 2))
    a = main.add_tensor("a", "float32", [3], external_buffer=first)
    b = main.add_tensor("b", "float32", [3], external_buffer=second)
    with pytest.raises(ModelError, match="takes 16 bytes .*has 12"):
        main.add_tensor("c", "float32", [4], external_buffer=second)
    assert list(builder.external_files()) == ["weights/w.bin"]
    builder.save(tmp_path / "m.tflite")
    model = Model.open(tmp_path / "m.tflite")
    verify(model)
    tensors = (model.root.subgraphs or [])[0].tensors or []
    found = [model.tensor_bytes(tensors[i]).view(np.float32).tolist() for i in (a, b)]  # type: ignore[union-attr]
    assert found == [[1, 1, 1], [2, 2, 2]]

    # Read, change, write elsewhere: the files go with it.
    again = ModelBuilder.from_model(model)
    third = again.add_external_buffer("weights/w.bin", b"abcd")
    assert third not in (first, second)
    (tmp_path / "there").mkdir()
    again.save(tmp_path / "there" / "n.tflite")
    copy = Model.open(tmp_path / "there" / "n.tflite")
    assert bytes(copy.external_buffer(third)) == b"abcd"
    assert copy.external_buffer(second).tolist() == model.external_buffer(second).tolist()


def test_a_model_that_was_read_goes_on() -> None:
    builder, main = graph(description="first")
    w = main.add_tensor("w", "float32", [4], data=[1, 2, 3, 4])
    main.add_operator("ADD", [0, w], [1], AddOptions(), version=3)
    main.add_operator("Foo", [1], [main.add_tensor("z", "float32", [4])], custom_options=b"xyz")
    builder.add_signature("s", {"x": 0}, {"y": 1})
    builder.add_metadata("m", b"1")
    model = builder.build()
    before = model.to_bytes()
    again = ModelBuilder.from_model(model)
    assert again.to_bytes() == before
    graph_again = again.subgraphs[0]
    with pytest.raises(ModelError, match="writes tensor 1 .*which node 0 writes already"):
        graph_again.add_operator("RELU", [0], [1])
    top = graph_again.add_tensor("top", "float32", [4])
    graph_again.add_operator("RELU", [1], [top])
    graph_again.set_outputs(top)
    assert codes(again) == [("ADD", 3), ("Foo", 1), ("RELU", 1)]
    verify(again.build())
    assert model.to_bytes() == before


def test_operator_codes_for_operators_written_by_hand() -> None:
    builder, main = graph()
    index = builder.add_operator_code("RELU", 2)
    main.table.operators.append(  # type: ignore[union-attr]
        tables.Operator(opcode_index=index, inputs=np.int32([0]), outputs=np.int32([1]))
    )
    main.add_operator("RELU", [0], [main.add_tensor("z", "float32", [4])])
    assert codes(builder) == [("RELU", 2), ("RELU", 1)]
    assert builder.add_operator_code("RELU", 2) == index


def reference_sparsify(array: Any, order: list[int], kinds: list[str], blocks: dict[int, int]) -> tuple[list[Any], list[Any]]:
    """Brute force, recursive: a level's children are all of them, or those below which something is not zero."""
    shape = [n // blocks.get(d, 1) for d, n in enumerate(array.shape)] + list(blocks.values())
    levels: list[Any] = [[0] if kinds[i] == "SPARSE_CSR" else shape[d] for i, d in enumerate(order)]
    indices: list[list[int]] = [[] for _ in order]
    values: list[Any] = []

    def at(place: list[int]) -> Any:
        by = dict(zip(order, place))
        inner = {d: by[array.ndim + k] for k, d in enumerate(blocks)}
        return array[tuple(by[d] * blocks.get(d, 1) + inner.get(d, 0) for d in range(array.ndim))]

    def below(prefix: list[int]) -> list[Any]:
        rest = [range(shape[d]) for d in order[len(prefix) :]]
        return [at([*prefix, *p]) for p in itertools.product(*rest)]

    def visit(prefix: list[int]) -> None:
        depth = len(prefix)
        if depth == len(order):
            values.append(at(prefix))
            return
        for place in range(shape[order[depth]]):
            if kinds[depth] == "DENSE" or any(below([*prefix, place])):
                if kinds[depth] != "DENSE":
                    indices[depth].append(place)
                visit([*prefix, place])
        if kinds[depth] != "DENSE":
            levels[depth].append(len(indices[depth]))

    visit([])
    return values, [(level, index) if isinstance(level, list) else level for level, index in zip(levels, indices)]


@given(st.data())
def test_sparsify_stores_what_the_rule_says(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 3))
    blocks = {d: data.draw(st.integers(1, 2)) for d in range(rank) if data.draw(st.booleans())}
    shape = [data.draw(st.integers(1, 3)) * blocks.get(d, 1) for d in range(rank)]
    size = int(np.prod(shape))
    array = np.array(data.draw(st.lists(st.sampled_from([0, 0, 0, 1, -2]), min_size=size, max_size=size))).reshape(shape)
    format = data.draw(st.lists(st.sampled_from(["DENSE", "SPARSE_CSR"]), min_size=rank, max_size=rank))
    order = data.draw(st.permutations(range(rank))) + [rank + d for d in data.draw(st.permutations(range(len(blocks))))]
    values, sparsity = sparsify(
        array, format, traversal_order=order, block_map=list(blocks), block_size=list(blocks.values())
    )  # fmt: skip
    kinds = [*format, *["DENSE"] * len(blocks)]
    expected, levels = reference_sparsify(array, order, [kinds[d] for d in order], blocks)
    assert values.tolist() == expected
    found: list[Any] = []
    for level in sparsity.dim_metadata or []:
        if level.format is DimensionType.DENSE:
            found.append(level.dense_size)
        else:
            found.append((level.array_segments.values.tolist(), level.array_indices.values.tolist()))  # type: ignore[union-attr]
    assert found == levels
    builder, main = graph()
    main.add_tensor("s", "int8", shape, data=values, sparsity=sparsity)
    verify(builder.build())


def test_indices_take_the_narrowest_vector() -> None:
    for size, name in ((200, "Uint8Vector"), (300, "Uint16Vector"), (70000, "Int32Vector")):
        array = np.zeros((1, size), np.int8)
        array[0, -1] = 1
        level = (sparsify(array).sparsity.dim_metadata or [])[1]
        assert type(level.array_indices).__name__ == name
        assert type(level.array_segments).__name__ == "Uint8Vector"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"format": ["DENSE"]}, "names 1 dimensions of 2"),
        ({"format": ["DENSE", "CSR"]}, "a dimension is DENSE or SPARSE_CSR"),
        ({"traversal_order": [0, 0]}, r"traversal order \[0, 0\]"),
        ({"traversal_order": [2, 0, 1], "block_map": [0], "block_size": [2]}, "traversal order"),
        ({"block_map": [1, 0], "block_size": [1, 1]}, "rising"),
        ({"block_map": [0], "block_size": [3]}, "Blocks of 3 do not divide dimension 0"),
        ({"block_map": [0], "block_size": []}, "block map"),
    ],
)
def test_a_wrong_sparsity_is_refused(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(ModelError, match=reason):
        sparsify(np.zeros((4, 4)), **given)
    with pytest.raises(ModelError, match="scalar cannot be sparse"):
        sparsify(1.0)


def test_sparse_data_are_as_many_as_the_table_says() -> None:
    values, sparsity = sparsify(np.eye(3, dtype=np.float32))
    _, main = graph()
    with pytest.raises(ModelError, match="takes 3 stored values, its data have 2"):
        main.add_tensor("s", "float32", [3, 3], data=values[:2], sparsity=sparsity)


def test_the_reader_refuses_scales_that_do_not_fit() -> None:
    """The writer refuses them too, so that the table is changed behind its back."""
    builder, main = graph()
    index = main.add_tensor("q", "int8", [2], scale=[1, 2])
    quantization = (main.table.tensors or [])[index].quantization
    quantization.scale, quantization.zero_point = np.ones(3, np.float32), np.zeros(3, np.int64)  # type: ignore[union-attr]
    with pytest.raises(ModelError, match="num_scales must be 1 .*got 3"):
        verify(builder.build())
