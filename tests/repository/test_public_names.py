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
    "CustomPrefix": "oplet.ops.custom_prefix",
    "InterpreterWithCustomOps": "oplet.interpreter",
    "SignatureRunner": "oplet.interpreter",
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
    oplet.tuning.node_comparison oplet.tuning.random_inputs oplet.tuning.sensitivity oplet.tuning.splits
    oplet.tuning.splits.node_times oplet.tuning.splits.proposals oplet.tuning.splits.stopwatch
    oplet.tuning.timed_interpreter oplet.tuning.tolerances oplet.tuning.trials
"""
#: Where these modules live now.
MOVED = {"testing": "oplet_testing", "tuning": "oplet_tools.tuning"}


def test_they_are_as_many_as_they_were() -> None:
    assert tuple(len(set(text.split())) for text in (NAMES, TESTING, MODULES)) == (77, 17, 64)


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
