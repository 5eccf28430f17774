"""Every test of LiteRT that this folder answers for, and where.

From google-ai-edge/LiteRT, snapshot of 2026-08-21: all tests of three files, and those of interpreter_test.cc that are about
delegates or the memory that they share. `test_complete.py` checks that each function exists and carries the name.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["NO_COUNTERPART", "SCENARIOS", "Scenario"]


class Scenario(NamedTuple):
    """One test of LiteRT.

    Attributes:
        file: LiteRT's file, below tflite/.
        litert: the name of its test.
        here: module and function that state it here, "" if nothing can.
        difference: what is otherwise here on purpose, or why there is no counterpart.
    """

    file: str
    litert: str
    here: str
    difference: str = ""


_NO_DEFAULT = "there is no delegate that applies itself; experimental_delegates= does what the application says, or raises"

#: Tests whose scenario cannot arise in Python.
NO_COUNTERPART = {
    "SubgraphResizeTensorTest.ResizeDynamicTensorWithSameShapeButDifferentBytesReallocatesData": (
        "an array has the bytes of its shape; nothing can allocate others behind the runtime's back"
    ),
    "TestLazyDelegateProvider.ApplicationSuccess": _NO_DEFAULT,
    "TestLazyDelegateProvider.ApplicationFailure": _NO_DEFAULT,
    "TestLazyDelegateProvider.ApplicationSkipped": _NO_DEFAULT,
}

_TWIN = "the opaque C interface and the other are one here"
_DIFFERENCES = {
    "RemoveUnusedInputs.NothingToRemove": "unused inputs keep their place; `Callee.reads` tells",
    "RemoveUnusedInputs.HasUnusedInputs": "unused inputs keep their place; `Callee.reads` tells",
    "RemoveUnusedInputs.BypassInputsWithoutOp": "unused inputs keep their place; `Callee.reads` tells",
    "SubgraphResizeTensorTest.ResizeDynamicTensorWithEquivalentBufferSizeIsANoop": "a new array, since arrays have a shape",
    "TestDelegate.StaticDelegateMakesGraphImmutable": "tensors have no setter of parameters; adding one is refused in its place",
    "TestDelegate.DelegateCustomOpResolution": "a static delegate may claim an unresolved op too",
    "TestDelegateKernel.WithoutName": "a kernel that has nothing to invoke is refused when it is applied",
    "TestOpaqueDelegateBuilderWithDynamicTensors.DisallowDynamicTensors": _TWIN,
    "TestOpaqueDelegateBuilderWithDynamicTensors.AllowDynamicTensors": _TWIN,
    "TestOpaqueDelegateBuilderWithDynamicTensors.ModifyGraphAfterAllocate": _TWIN,
    "TestOpaqueDelegateBuilderWithDynamicTensors.ShapePropagation_FlagSet": _TWIN,
    "TestOpaqueDelegateBuilderWithDynamicTensors.ShapePropagation_FlagNotSet": _TWIN,
}

_HERE = {
    "core/subgraph_test.cc": {
        "RemoveUnusedInputs.NothingToRemove": "test_subgraph.test_control_flow_copies_the_inputs_that_somebody_reads",
        "RemoveUnusedInputs.HasUnusedInputs": "test_subgraph.test_control_flow_copies_the_inputs_that_somebody_reads",
        "RemoveUnusedInputs.BypassInputsWithoutOp": "test_subgraph.test_control_flow_copies_the_inputs_that_somebody_reads",
        "GetSubgraphContext.NonConstGetSubgraphContext": "test_subgraph.test_contexts_of_other_subgraphs",
        "MarkSubgraphAsDelegationSkippable.MarkSubgraphAsDelegationSkippable": "test_subgraph.test_a_delegate_marks_subgraphs_that_it_has_taken",
        "SubgraphResizeTensorTest.ResizeEmptyDynamicTensorAllocateData": "test_subgraph.test_the_first_resize_brings_memory",
        "SubgraphResizeTensorTest.ResizeEmptyDynamicTensorWithStoredShapeAllocatesData": "test_subgraph.test_the_first_resize_brings_memory",
        "SubgraphResizeTensorTest.ResizeDynamicTensorWithTheEqualShapeIsANoop": "test_subgraph.test_a_resize_to_the_same_shape_keeps_the_memory",
        "SubgraphResizeTensorTest.ResizeDynamicTensorWithStoredShapeIsANoop": "test_subgraph.test_a_resize_to_the_same_shape_keeps_the_memory",
        "SubgraphResizeTensorTest.ResizeDynamicTensorWithEquivalentBufferSizeIsANoop": "test_subgraph.test_a_resize_to_another_shape_brings_memory_of_that_shape",
        "SubgraphResizeTensorTest.ResizeDynamicTensorWithDifferentShapeReallocatesData": "test_subgraph.test_a_resize_to_another_shape_brings_memory_of_that_shape",
        "SubgraphResizeTensorTest.ResizeDynamicTensorWithSameShapeButDifferentBytesReallocatesData": "",
        "SubgraphResizeTensorTest.ResizeDynamicTensorWithSameShapeButStringTypeSizeReallocatesData": "test_subgraph.test_tensors_without_a_size_in_bytes_are_resized",
        "SubgraphResizeTensorTest.ResizeDynamicTensorWithSameShapeButRessourceTypeSizeReallocatesData": "test_subgraph.test_tensors_without_a_size_in_bytes_are_resized",
        "SubgraphResizeTensorTest.ResizeDynamicTensorWithSameShapeButVariantTypeSizeReallocatesData": "test_subgraph.test_tensors_without_a_size_in_bytes_are_resized",
    },
    "graph_info_test.cc": {
        "PartitionTest.Nodes0PartitionNodes0": "test_partition.test_graphs_are_cut_as_litert_cuts_them",
        "PartitionTest.Nodes0PartitionNodes0Tensors1": "test_partition.test_graphs_are_cut_as_litert_cuts_them",
        "PartitionTest.Nodes1PartitionNodes0": "test_partition.test_graphs_are_cut_as_litert_cuts_them",
        "PartitionTest.Nodes1PartitionNodes0_WithOffset": "test_partition.test_graphs_are_cut_as_litert_cuts_them",
        "PartitionTest.Nodes1PartitionNodes0Inputs0": "test_partition.test_graphs_are_cut_as_litert_cuts_them",
        "PartitionTest.Nodes1PartitionNodes1": "test_partition.test_graphs_are_cut_as_litert_cuts_them",
        "PartitionTest.Nodes2PartitionNodes1": "test_partition.test_graphs_are_cut_as_litert_cuts_them",
        "PartitionTest.Nodes2PartitionNodes1_WithOffset": "test_partition.test_graphs_are_cut_as_litert_cuts_them",
        "PartitionTest.Nodes2PartitionNodes2": "test_partition.test_graphs_are_cut_as_litert_cuts_them",
        "PartitionTest.Nodes3PartitionNodes2": "test_partition.test_graphs_are_cut_as_litert_cuts_them",
        "PartitionTest.Nodes3PartitionNodes2Greedily": "test_partition.test_graphs_are_cut_as_litert_cuts_them",
        "PartitionTest.Nodes3PartitionNodes2ClusteredNonGreedily": "test_partition.test_graphs_are_cut_as_litert_cuts_them",
        "PartitionTest.Nodes4PartitionNodes3_WithControlDependency": "test_partition.test_graphs_are_cut_as_litert_cuts_them",
        "PartitionTest.Nodes4PartitionNodes3_WithExternalControlDependency": "test_partition.test_graphs_are_cut_as_litert_cuts_them",
        "PartitionTest.InvalidNodesToPartitionRejected": "test_partition.test_what_litert_refuses_is_refused",
        "PartitionTest.InvalidControlEdgesRejected": "test_partition.test_what_litert_refuses_is_refused",
        "PartitionTest.UnscheduledNodesRejected": "test_partition.test_what_litert_refuses_is_refused",
        "PartitionTest.ComplexGreedily": "test_partition.test_graphs_are_cut_as_litert_cuts_them",
        "PartitionTest.ComplexNonGreedily": "test_partition.test_graphs_are_cut_as_litert_cuts_them",
    },
    "delegates/delegate_test.cc": {
        "TestDelegate.NullDelegate": "test_one_delegate.test_no_delegate_is_refused",
        "TestDelegate.BasicDelegate": "test_one_delegate.test_the_kernel_node_knows_what_it_replaces",
        "TestDelegate.DelegateNodeInitFailure": "test_one_delegate.test_a_kernel_that_fails_in_init_refuses_the_delegation",
        "TestDelegate.DelegateNodePrepareFailure": "test_one_delegate.test_a_kernel_that_fails_in_prepare_leaves_a_graph_that_runs",
        "TestDelegate.DelegateNodeInvokeFailure": "test_one_delegate.test_a_kernel_that_fails_in_invoke_fails_alone",
        "TestDelegate.StaticDelegateMakesGraphImmutable": "test_one_delegate.test_a_static_delegate_leaves_the_graph_immutable",
        "TestDelegate.ComplexDelegate": "test_one_delegate.test_other_nodes_stay_in_the_plan",
        "TestDelegate.SetBufferHandleToInput": "test_one_delegate.test_a_buffer_stands_for_a_tensor",
        "TestDelegate.SetBufferHandleToOutput": "test_one_delegate.test_a_buffer_stands_for_a_tensor",
        "TestDelegate.SetInvalidHandleToTensor": "test_one_delegate.test_another_delegate_s_buffer_is_refused",
        "TestDelegate.TestResizeInputWithNonDynamicDelegate": "test_one_delegate.test_a_resize_undoes_a_static_delegate_until_tensors_are_allocated",
        "TestDelegate.TestRequirePropagatedShapes_NonDynamicDelegate": "test_one_delegate.test_a_static_delegate_has_shapes_anyway",
        "TestDelegate.TestRequirePropagatedShapes_DynamicDelegateWithFlag": "test_one_delegate.test_shapes_are_propagated_for_a_dynamic_delegate_that_asks",
        "TestDelegate.TestRequirePropagatedShapes_DynamicDelegateWithoutFlag": "test_one_delegate.test_shapes_are_not_propagated_for_a_dynamic_delegate_that_does_not_ask",
        "TestDelegate.TestCopyFromBufferInvoke": "test_one_delegate.test_without_a_buffer_nothing_is_copied",
        "TestDelegate.TestCopyFromBuffer": "test_one_delegate.test_a_stale_output_is_copied_from_its_buffer",
        "TestOpaqueDelegate.PrepareCopyFromFree": "test_one_delegate.test_buffers_are_freed_when_replaced_and_at_the_end",
        "TestDelegateKernel.WithoutName": "test_one_delegate.test_a_kernel_without_a_name_is_named_after_its_delegate",
        "TestDelegate.DelegateCustomOpResolution": "test_one_delegate.test_a_delegate_serves_an_op_that_nobody_else_does",
        "TestDelegate.AllSubgraphsAreDelegatedByDefault": "test_one_delegate.test_every_subgraph_is_delegated",
        "TestDelegate.ValidationSubgraphsAreNotDelegated": "test_one_delegate.test_validation_subgraphs_are_left_alone",
        "TestTwoDelegates.SecondDelegationPrepareFailure": "test_two_delegates.test_the_second_fails_and_both_are_undone",
        "TestTwoDelegates.SecondDelegationInvokeFailure": "test_two_delegates.test_the_second_fails_to_invoke_and_both_are_removed",
        "TestTwoDelegates.NodeIndicesCorrectlyHandledAfterDelegation": "test_two_delegates.test_the_second_names_nodes_as_the_model_does",
        "TestTwoDelegates.TestResizeInputTensors": "test_two_delegates.test_a_resize_undoes_both_if_one_is_static",
        "TestTwoDelegates.TestDelegationWithPartitionPreview": "test_two_delegates.test_a_preview_lets_a_delegate_leave_small_partitions",
        "TestTwoDelegates.TestRequirePropagatedShapes": "test_two_delegates.test_shapes_are_propagated_if_one_asks",
        "TestTwoDelegates.ReleaseNonPersistentMemoryWithDelegates": "test_two_delegates.test_memory_is_released_and_taken_again",
        "TestTwoDelegates.DynamicTensorBeforeStaticDelegate": "test_two_delegates.test_a_second_delegate_cannot_make_tensors_dynamic",
        "TestTwoDelegates.DynamicTensorAfterStaticDelegate": "test_two_delegates.test_a_second_delegate_cannot_make_tensors_dynamic",
        "TestDelegateWithDynamicTensors.DisallowDynamicTensors": "test_dynamic_tensors.test_a_static_delegate_is_not_asked_about_a_dynamic_graph",
        "TestOpaqueDelegateBuilderWithDynamicTensors.DisallowDynamicTensors": "test_dynamic_tensors.test_a_static_delegate_is_not_asked_about_a_dynamic_graph",
        "TestDelegateWithDynamicTensors.AllowDynamicTensors": "test_dynamic_tensors.test_a_dynamic_delegate_takes_a_dynamic_node",
        "TestOpaqueDelegateBuilderWithDynamicTensors.AllowDynamicTensors": "test_dynamic_tensors.test_a_dynamic_delegate_takes_a_dynamic_node",
        "TestDelegateWithDynamicTensors.ModifyGraphAfterAllocate": "test_dynamic_tensors.test_an_allocated_graph_stays_allocated",
        "TestOpaqueDelegateBuilderWithDynamicTensors.ModifyGraphAfterAllocate": "test_dynamic_tensors.test_an_allocated_graph_stays_allocated",
        "TestDelegateWithDynamicTensors.ShapePropagation_FlagSet": "test_dynamic_tensors.test_new_shapes_are_propagated_for_a_delegate_that_asks",
        "TestOpaqueDelegateBuilderWithDynamicTensors.ShapePropagation_FlagSet": "test_dynamic_tensors.test_new_shapes_are_propagated_for_a_delegate_that_asks",
        "TestDelegateWithDynamicTensors.ShapePropagation_FlagNotSet": "test_dynamic_tensors.test_new_shapes_are_not_propagated_for_a_delegate_that_does_not_ask",
        "TestOpaqueDelegateBuilderWithDynamicTensors.ShapePropagation_FlagNotSet": "test_dynamic_tensors.test_new_shapes_are_not_propagated_for_a_delegate_that_does_not_ask",
        "TestReleaseDynamicTensorWithDelegate.ShapePropagation_FlagNotSet": "test_dynamic_tensors.test_dynamic_tensors_can_be_released_once_they_are_read",
        "TestDelegateWithControlEdges.NoControlEdges": "test_control_edges.test_metadata_keeps_nodes_in_order",
        "TestDelegateWithControlEdges.OverrideControlEdges": "test_control_edges.test_metadata_keeps_nodes_in_order",
        "TestDelegateWithControlEdges.EmptyControlEdges": "test_control_edges.test_metadata_keeps_nodes_in_order",
        "TestDelegateWithControlEdges.CompatibleControlEdges1": "test_control_edges.test_metadata_keeps_nodes_in_order",
        "TestDelegateWithControlEdges.CompatibleControlEdges2": "test_control_edges.test_metadata_keeps_nodes_in_order",
        "TestDelegateWithControlEdges.MismatchedControlEdgeMetadataSubgraphCountIgnored": "test_control_edges.test_metadata_keeps_nodes_in_order",
        "TestFP16Delegation.NonDelegatedInterpreterWorks": "test_one_delegate.test_a_float16_model_runs_without_a_delegate",
        "TestFP16Delegation.NullDelegate": "test_one_delegate.test_a_float16_model_runs_without_a_delegate",
        "TestFP16Delegation.DelegationWorks": "test_one_delegate.test_a_delegate_takes_the_float16_constants_themselves",
        "TestFP16Delegation.DelegatePrepareFails": "test_one_delegate.test_a_failing_delegate_leaves_a_float16_model_as_it_was",
        "ExternalDelegateTest.CreateFailureWithInvalidLibrary": "test_one_delegate.test_a_name_that_no_package_brings_is_refused",
    },
    "interpreter_test.cc": {
        "BasicInterpreter.ReleaseNonPersistentMemory": "test_interpreter.test_released_memory_must_be_allocated_again",
        "BasicInterpreter.TestUnsupportedDelegateFunctions": "test_interpreter.test_kernels_do_not_get_what_delegates_get",
        "BasicInterpreter.DynamicTensorsResizeDescendants": "test_interpreter.test_tensors_behind_a_dynamic_one_follow_its_shape",
        "BasicInterpreter.ReleaseDynamicTensors": "test_dynamic_tensors.test_dynamic_tensors_can_be_released_once_they_are_read",
        "InterpreterTest.SubgraphNumbering": "test_interpreter.test_subgraphs_are_numbered_as_in_the_model",
        "InterpreterTest.ModifyGraphWithDelegateUsesActiveSubgraphs": "test_interpreter.test_a_delegate_is_asked_about_the_subgraphs_that_are_named",
        "InterpreterTest.ModifyGraphWithDelegateCanSkipMainSubgraph": "test_interpreter.test_a_delegate_is_asked_about_the_subgraphs_that_are_named",
        "InterpreterTest.ModifyGraphWithDelegateValidatesActiveSubgraphsBeforeDelegation": "test_interpreter.test_wrong_subgraphs_are_refused_before_anybody_is_asked",
        "TestDelegateOwnership.ProperlyDisposed": "test_interpreter.test_a_delegate_lives_as_long_as_its_interpreter",
        "TestLazyDelegateProvider.ApplicationSuccess": "",
        "TestLazyDelegateProvider.ApplicationFailure": "",
        "TestLazyDelegateProvider.ApplicationSkipped": "",
    },
}

SCENARIOS = [
    Scenario(file, litert, here, NO_COUNTERPART.get(litert, "") or _DIFFERENCES.get(litert, ""))
    for file, tests in _HERE.items()
    for litert, here in tests.items()
]
