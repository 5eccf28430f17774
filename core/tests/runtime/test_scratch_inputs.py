"""A custom op's input that nobody writes is memory for its kernel, as compilers for accelerators name it in their files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oplet import DelegateKernel, Interpreter, Limits, ModelBuilder, MutableOpResolver, Registration, SimpleDelegate, TensorType
from oplet.errors import LimitError, ModelError, UnresolvedOpError


def model(*ops: str, scratch: Any = "uint8", size: int = 16, shared: bool = True) -> bytes:
    """A chain of ops on three floats, each of which reads scratch memory too."""
    builder = ModelBuilder(minimum_runtime=False)
    graph = builder.add_subgraph()
    tensors = [graph.add_tensor(f"t{i}", "float32", [3]) for i in range(len(ops) + 1)]
    memory = [graph.add_tensor(f"scratch{i}", scratch, [size]) for i in range(1 if shared else len(ops))]
    for i, op in enumerate(ops):
        graph.add_operator(op, [tensors[i], memory[0 if shared else i]], [tensors[i + 1]])
    graph.set_inputs(tensors[0])
    graph.set_outputs(tensors[-1])
    return builder.to_bytes()


def resolver(prepare: Any = None) -> MutableOpResolver:
    """Twice works in its scratch memory: it spoils all of it, and keeps its values there for a while."""

    def invoke(context: Any, node: Any) -> None:
        x, scratch = (tensor.data for tensor in node.inputs)
        scratch.fill(255)
        scratch[:12].view(np.float32)[:] = x
        np.multiply(scratch[:12].view(np.float32), 2, out=node.outputs[0].data)

    found = MutableOpResolver()
    found.add_custom("Twice", Registration(prepare=prepare, invoke=invoke))
    return found


def run(interpreter: Interpreter) -> list[float]:
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.array([1, 2, 3], np.float32))
    interpreter.invoke()
    found: list[float] = interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).tolist()
    return found


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("checks", [True, False])
@pytest.mark.parametrize("preserve", [True, False])
def test_the_kernel_has_the_memory_that_the_file_states(shared: bool, checks: bool, preserve: bool) -> None:
    content = model("Twice", "Twice", "Twice", shared=shared)
    for _ in range(2):  # the second interpreter may take what the first one left
        interpreter = Interpreter(
            model_content=content, op_resolver=resolver(), plugins=[], checks=checks, experimental_preserve_all_tensors=preserve
        )
        assert [run(interpreter), run(interpreter)] == [[8, 16, 24]] * 2
        interpreter.close()


def test_the_kernel_may_ask_for_another_size() -> None:
    def prepare(context: Any, node: Any) -> None:
        context.resize_tensor(node.inputs[1], [64])

    interpreter = Interpreter(model_content=model("Twice", "Twice", size=1), op_resolver=resolver(prepare), plugins=[])
    assert run(interpreter) == [4, 8, 12]
    assert interpreter.get_tensor(3).shape == (64,)


def test_the_op_is_named_where_nobody_serves_it() -> None:
    with pytest.raises(UnresolvedOpError, match="ethos-u is what Arm's Vela compiler made"):
        Interpreter(model_content=model("ethos-u"), plugins=[]).allocate_tensors()


def test_a_delegate_that_claims_the_node_has_the_memory_too() -> None:
    class Kernel(DelegateKernel):
        def invoke(self, context: Any, node: Any) -> None:
            x, scratch = (tensor.data for tensor in node.inputs)
            assert scratch.shape == (16,)
            scratch.fill(1)
            np.multiply(x, 3, out=node.outputs[0].data)

    class Takes(SimpleDelegate):
        def is_node_supported(self, context: Any, node: Any) -> bool:
            return True

        def create_kernel(self, params: Any) -> Any:
            return Kernel()

    assert run(Interpreter(model_content=model("Nobody"), plugins=[], experimental_delegates=[Takes()])) == [3, 6, 9]


def test_scratch_memory_counts_for_the_limits() -> None:
    interpreter = Interpreter(
        model_content=model("Twice", size=1 << 20), op_resolver=resolver(), plugins=[], limits=Limits(max_tensor_bytes=1 << 16)
    )
    with pytest.raises(LimitError):
        interpreter.allocate_tensors()


@pytest.mark.parametrize("ops", [["ABS"], ["Twice", "ABS"]])
def test_a_built_in_operator_still_needs_its_inputs(ops: list[str]) -> None:
    builder = ModelBuilder(minimum_runtime=False)
    graph = builder.add_subgraph()
    lacking = graph.add_tensor("lacking", "float32", [3])
    outputs = [graph.add_tensor(f"y{i}", "float32", [3]) for i in range(len(ops))]
    for op, output in zip(ops, outputs):
        graph.add_operator(op, [lacking], [output])
    graph.set_inputs()
    graph.set_outputs(*outputs)
    with pytest.raises(ModelError, match=r"Input tensor 0 lacks data. Node \d \(ABS\)"):
        Interpreter(model_content=builder.to_bytes(), op_resolver=resolver())


@pytest.mark.parametrize("type", ["string", "resource", "variant"])
def test_objects_are_no_memory(type: str) -> None:
    with pytest.raises(ModelError, match=r"Input tensor 2 lacks data. Node 0 \(Twice\)"):
        Interpreter(model_content=model("Twice", scratch=TensorType[type.upper()]), op_resolver=resolver())
