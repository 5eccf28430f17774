"""Every public name, and every module behind one, from before the core was cut into packages is where it was, the packages being installed."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

import pytest
from tests.children import run_child

import oplet
from oplet.companions import KNOWN

#: The names of `oplet`.
NAMES = """
    Allocation AsyncKernel AsyncSignatureRunner BackendBuffer BufferAttribute BuiltinOperator CacheFolder
    Callee CommandRegistry Composite Context CustomPrefix Delegate DelegateContext DelegateFlags
    DelegateKernel DelegateParams DelegateRegistry ExecutionTask Interpreter
    InterpreterWithCustomOps IoType Joiner Limits Loop LoopJoiner Model ModelBuilder MutableOpResolver
    NO_SYNC_OBJECT NUMPY_BUFFER Node NodeLimits NodeSubset OpResolver OpResolverType Places PluginManager
    Predictor Profiler Provenance Quantization Reconciliation Registration RunAnew SignatureRunner
    SimpleDelegate StoredThunks StoringJoiner Synchronization SynchronizationAttribute THREADING_EVENT
    TaskStatus Tensor TensorBuilder TensorType ThreadedAsyncKernel TypeLimit UnforeseenShapeError Work
    WorkTable charge checkpoint decline ensure ensure_eq ensure_fits ensure_type hookimpl kernel_registration
    largest_partitions limited load_delegate python_process reconcile_attributes uncovered_attributes
    write_atomically
"""
#: Names of `oplet` that were taken back, as no package used them, and where they still are; "" for those that are no more.
GONE = {
    "CustomPrefix": "oplet.ops.serving.provenance",
    "InterpreterWithCustomOps": "oplet.interpreter",
    "SignatureRunner": "oplet.interpreter",
    "Loop": "",
    "LoopJoiner": "",
    "Places": "",
    "RunAnew": "",
    "StoringJoiner": "",
    "UnforeseenShapeError": "",
    "ensure_eq": "",
    "limited": "",
}
#: The names of `oplet.testing`.
TESTING = """
    Contract DelegateContract Graph Op OpContract Spec WrappingDelegate call_op chain_graph elementwise
    first_failure graph_model invoke invoke_steps litert_interpreter one_op_model run_op
"""
#: Modules that programs may import: `oplet.tuning.child.subprocesses` alone is not among them, whose public name is `oplet.python_process`.
MODULES = """
    oplet.builder oplet.errors oplet.interpreter oplet.kernels oplet.kernels.activations oplet.kernels.arrays
    oplet.kernels.axes oplet.kernels.broadcasting oplet.kernels.fixed_point oplet.kernels.operands
    oplet.kernels.options oplet.kernels.requantization oplet.kernels.shapes oplet.kernels.windows oplet.schema
    oplet.schema.columns oplet.schema.decode oplet.schema.encode oplet.schema.enums oplet.schema.flexbuffers
    oplet.schema.naming oplet.schema.options oplet.schema.stablehlo_options oplet.schema.table
    oplet.schema.table_decoder oplet.schema.tables oplet.testing oplet.testing.chains oplet.testing.contract
    oplet.testing.delegate_contract oplet.testing.distributions oplet.testing.graphs oplet.testing.harness
    oplet.testing.harness.assertions oplet.testing.harness.graph_access oplet.testing.harness.memory_growth
    oplet.testing.harness.memory_poisoning oplet.testing.harness.runs oplet.testing.harness.spies
    oplet.testing.litert oplet.testing.one_op oplet.testing.op_contract oplet.testing.pytest_plugin
    oplet.testing.wrapping_delegate oplet.tuning oplet.tuning.candidates oplet.tuning.child
    oplet.tuning.child.job oplet.tuning.child.measuring oplet.tuning.child.parent
    oplet.tuning.child.trial_json oplet.tuning.choice oplet.tuning.choice_cache oplet.tuning.differences
    oplet.tuning.node_comparison oplet.tuning.random_inputs oplet.tuning.sensitivity
    oplet.tuning.timed_interpreter oplet.tuning.tolerances oplet.tuning.trials
"""
#: The public names of these modules: those of `__all__`, or all that is declared there.
WITHIN = {
    "oplet.builder": """
        BlockwiseQuantization BuiltinOperator CustomQuantization DimensionMetadata DimensionType ModelBuilder
        MultiAxisQuantization QuantizationParameters Sparse SparsityParameters SubgraphBuilder TensorType VariantSubType
        options_class pack_flexbuffer pack_strings pack_values sparsify
    """,
    "oplet.errors": """
        CancelledError CustomOptionsError DeadlineError DelegateApplicationError DelegateError DelegateLoadError
        ImmutableGraphError InvokeError LimitError ModelError OpConflictError OpNotFoundError OpVersionError OpletError
        PluginError PrepareError ResolverError SignatureError StateError TensorError UnresolvedOpError ViewError
        failures text_of
    """,
    "oplet.interpreter": """
        Delegate Interpreter InterpreterWithCustomOps OpResolverType SignatureRunner load_delegate
    """,
    "oplet.kernels.activations": """
        CLAMPS activation_range apply_activation float_activation_range
    """,
    "oplet.kernels.arrays": """
        Array Copies Shape Thunk address_of copier copies spans
    """,
    "oplet.kernels.axes": """
        along ensure_few read_int read_ints resolve_axes resolve_axis
    """,
    "oplet.kernels.broadcasting": """
        broadcast_shape
    """,
    "oplet.kernels.fixed_point": """
        clip ensure_scale int32_of multiply_by_quantized_multiplier multiply_by_quantized_multiplier_int64
        multiply_rounding_up quantize_multiplier quantize_multipliers quantized_range quotient rounding_divide_by_pot
        saturating_rounding_doubling_high_mul single_rounding wide_shift wrapping_divide_by_pot
    """,
    "oplet.kernels.operands": """
        PLAIN_TYPES all_constant all_types_but ensure_operands ensure_plain ensure_same_quantization ensure_same_shape
        ensure_same_type ensure_vector take_type
    """,
    "oplet.kernels.options": """
        CustomOptions flag int32s integer integers number tensorflow_node
    """,
    "oplet.kernels.requantization": """
        Requantization Rounding
    """,
    "oplet.kernels.shapes": """
        defer_or_resize defer_or_run defer_refusals failing_thunk has_placeholder offer_in_place
    """,
    "oplet.kernels.windows": """
        Axis Windows2D padding_around padding_before transposed_axis window_axis windows_in
    """,
    "oplet.schema.columns": """
        Columns LazyTables Vectors as_lazy_tables
    """,
    "oplet.schema.decode": """
        decode extent
    """,
    "oplet.schema.encode": """
        PADDING encode encode_pieces
    """,
    "oplet.schema.enums": """
        ActivationFunctionType BuiltinOperator CombinerType CustomOptionsFormat DimensionType
        FullyConnectedOptionsWeightsFormat LSHProjectionType LSTMKernelType MirrorPadMode Padding ReduceWindowFunction
        RngAlgorithm StablehloComparisonDirection StablehloComparisonType StablehloPrecisionConfig TensorType
    """,
    "oplet.schema.flexbuffers": """
        flexbuffer_map read_flexbuffer
    """,
    "oplet.schema.naming": """
        shown
    """,
    "oplet.schema.options": """
        ATan2Options AbsOptions AddNOptions AddOptions ArgMaxOptions ArgMinOptions AssignVariableOptions
        BatchMatMulOptions BatchToSpaceNDOptions BidirectionalSequenceLSTMOptions BidirectionalSequenceRNNOptions
        BitcastOptions BitwiseXorOptions BroadcastToOptions BucketizeOptions BuiltinOptions CallOnceOptions CallOptions
        CastOptions ConcatEmbeddingsOptions ConcatenationOptions Conv2DOptions Conv3DOptions CosOptions CumsumOptions
        DensifyOptions DepthToSpaceOptions DepthwiseConv2DOptions DequantizeOptions DivOptions DynamicUpdateSliceOptions
        EmbeddingLookupSparseOptions EqualOptions ExpOptions ExpandDimsOptions FakeQuantOptions FillOptions
        FloorDivOptions FloorModOptions FullyConnectedOptions GatherNdOptions GatherOptions GeluOptions
        GreaterEqualOptions GreaterOptions HardSwishOptions HashtableFindOptions HashtableImportOptions HashtableOptions
        HashtableSizeOptions IfOptions L2NormOptions LSHProjectionOptions LSTMOptions LeakyReluOptions LessEqualOptions
        LessOptions LocalResponseNormalizationOptions LogSoftmaxOptions LogicalAndOptions LogicalNotOptions
        LogicalOrOptions MatrixDiagOptions MatrixSetDiagOptions MaximumMinimumOptions MirrorPadOptions MulOptions
        NegOptions NonMaxSuppressionV4Options NonMaxSuppressionV5Options NotEqualOptions OneHotOptions PackOptions
        PadOptions PadV2Options Pool2DOptions PowOptions QuantizeOptions RNNOptions RandomOptions RangeOptions
        RankOptions ReadVariableOptions ReducerOptions ReshapeOptions ResizeBilinearOptions ResizeNearestNeighborOptions
        ReverseSequenceOptions ReverseV2Options Rfft2dOptions RightShiftOptions SVDFOptions ScatterNdOptions
        SegmentSumOptions SelectOptions SelectV2Options SequenceRNNOptions ShapeOptions SignOptions SkipGramOptions
        SliceOptions SoftmaxOptions SpaceToBatchNDOptions SpaceToDepthOptions SparseToDenseOptions SplitOptions
        SplitVOptions SquareOptions SquaredDifferenceOptions SqueezeOptions StridedSliceOptions SubOptions TileOptions
        TopKV2Options TransposeConvOptions TransposeOptions UnidirectionalSequenceLSTMOptions UniqueOptions
        UnpackOptions UnsortedSegmentMaxOptions UnsortedSegmentMinOptions UnsortedSegmentProdOptions
        UnsortedSegmentSumOptions VarHandleOptions WhereOptions WhileOptions ZerosLikeOptions
    """,
    "oplet.schema.stablehlo_options": """
        BuiltinOptions2 DilateOptions ReduceWindowOptions StableHLOCompositeOptions StablehloBroadcastInDimOptions
        StablehloCaseOptions StablehloCompareOptions StablehloConcatenateOptions StablehloConvolutionOptions
        StablehloCustomCallOptions StablehloDotGeneralOptions StablehloDynamicSliceOptions StablehloGatherOptions
        StablehloIotaOptions StablehloPadOptions StablehloReduceOptions StablehloReduceWindowOptions
        StablehloRngBitGeneratorOptions StablehloScatterOptions StablehloShiftLeftOptions StablehloSliceOptions
        StablehloSortOptions StablehloTransposeOptions StablehloWhileOptions
    """,
    "oplet.schema.table": """
        Field Table
    """,
    "oplet.schema.table_decoder": """
        Layout Numbers SOFFSET STRING_HEAD TableDecoder UOFFSET VTABLE_HEAD
    """,
    "oplet.schema.tables": """
        BlockwiseQuantization Buffer CustomQuantization DimensionMetadata ExternalBuffer ExternalBufferGroup Int32Vector
        Metadata Model MultiAxisQuantization Operator OperatorCode QuantizationDetails QuantizationParameters
        SignatureDef SparseIndexVector SparsityParameters SubGraph Tensor TensorMap Uint16Vector Uint8Vector
        VariantSubType operator_code
    """,
}
#: Names of theirs that were taken back, and the modules that still have them; "" for those that are no more.
GONE_WITHIN = {
    "CustomOptions": "oplet_builtin_ops.custom_options",
    "all_types_but": "oplet_builtin_ops.operands",
    "apply_activation": "oplet_builtin_ops.arithmetic.fused_activations",
    "defer_refusals": "",
    "ensure_same_quantization": "oplet_builtin_ops.arithmetic.quantization",
    "failing_thunk": "",
    "int32s": "",
    "take_type": "oplet_builtin_ops.operands",
    "transposed_axis": "oplet_builtin_ops.layers.transposed_windows",
}
#: Where these modules live now.
MOVED = {"testing": "oplet_testing", "tuning": "oplet_tools.tuning"}


def test_they_are_as_many_as_they_were() -> None:
    assert tuple(len(set(text.split())) for text in (NAMES, TESTING, MODULES)) == (77, 17, 60)
    assert {module for module in MODULES.split() if module.split(".")[1] not in MOVED} - WITHIN.keys() == {
        "oplet.kernels",
        "oplet.schema",
    }


@pytest.mark.parametrize("name", NAMES.split())
def test_a_name_of_oplet_is_imported(name: str) -> None:
    if name in GONE:
        assert name not in oplet.__all__
        assert not GONE[name] or hasattr(importlib.import_module(GONE[name]), name)
        return
    assert getattr(oplet, name, None) is not None
    assert (name in oplet.__all__) != (name in KNOWN)


@pytest.mark.parametrize("name", TESTING.split())
def test_a_name_of_the_test_kit_is_imported(name: str) -> None:
    assert getattr(oplet.testing, name) is getattr(importlib.import_module("oplet_testing"), name)


@pytest.mark.parametrize("module", WITHIN)
def test_a_public_name_of_a_module_is_imported(module: str) -> None:
    found, names = importlib.import_module(module), WITHIN[module].split()
    assert [name for name in names if not hasattr(found, name)] == [name for name in names if name in GONE_WITHIN]


@pytest.mark.parametrize(("name", "home"), GONE_WITHIN.items())
def test_a_name_that_was_taken_back_is_where_one_package_has_it(name: str, home: str) -> None:
    assert any(name in names.split() for names in WITHIN.values())
    assert not home or hasattr(importlib.import_module(home), name)


@pytest.mark.parametrize("module", MODULES.split())
def test_a_module_is_imported_under_its_name(module: str) -> None:
    found = importlib.import_module(module)
    room = module.split(".")[1]
    if room not in MOVED:
        assert found.__file__
        return
    home = importlib.import_module(module.replace(f"oplet.{room}", MOVED[room]))
    # Modules within it are other objects by the other name, once somebody has imported them by that.
    public = getattr(home, "__all__", None) or [
        name for name, value in vars(home).items() if name[0] != "_" and not isinstance(value, ModuleType)
    ]
    assert [name for name in public if getattr(found, name) is not getattr(home, name)] == []


def test_a_class_is_the_same_one_by_every_name() -> None:
    code = """
from oplet.testing.one_op import Spec
import oplet.testing, oplet_testing
from oplet.tuning import trials
import oplet_tools.tuning.trials
assert Spec is oplet.testing.Spec is oplet_testing.Spec
assert trials.__all__ == oplet_tools.tuning.trials.__all__
from oplet import Predictor
import oplet, oplet_predictor
assert Predictor is oplet.Predictor is oplet_predictor.predictor.Predictor
"""
    run_child([sys.executable, "-c", code])
