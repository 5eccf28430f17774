"""`hardware_accel`: delegates are chosen by the hardware that they say they run on, the CPU takes what is left, and nothing is made up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plugins.compiled_model.tests.models import F32

from oplet import ModelBuilder, SimpleDelegate
from oplet.schema.options import FullyConnectedOptions
from oplet_compiled_model import CompiledModel, CompiledModelError, CpuKernelMode, CpuOptions, HardwareAccelerator, Options
from oplet_testing import one_op_model
from oplet_testing.distributions import fake_distribution, installed
from oplet_testing.one_op import Spec

CPU, GPU, NPU = HardwareAccelerator.CPU, HardwareAccelerator.GPU, HardwareAccelerator.NPU
SOURCE = """
    from oplet import hookimpl
    from plugins.compiled_model.tests.test_hardware import Claims

    @hookimpl
    def register_delegates(registry):
        registry.add("aaa-absent", Claims, accelerates={"gpu": {"absent": "1"}})
        registry.add("gpu-of-tests", Claims, accelerates={"gpu": {"ops": "ABS"}})
        registry.add("npu-of-tests", Claims, accelerates={"npu": {"ops": "NEG"}})
        registry.add("cpu-of-tests", Claims, accelerates={"cpu": {"ops": "ABS NEG"}})
"""


class Claims(SimpleDelegate):
    """Claims the operators that its options name."""

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        if "absent" in self.options:
            raise ValueError("there is no such device")

    def is_node_supported(self, context: Any, node: Any) -> bool | str:
        return node.op_name in self.options["ops"].split() or "it is of another kind"

    def create_kernel(self, params: Any) -> Any:
        from core.tests.chains import Computes

        names = [node.op_name for node in params.nodes]
        return Computes(lambda x: -np.abs(x) if names == ["ABS", "NEG"] else np.abs(x) if names == ["ABS"] else -x)


@pytest.fixture
def delegates(tmp_path: Path) -> Iterator[None]:
    """Delegates for an NPU, a GPU and a CPU, beside what is installed."""
    site = fake_distribution(
        tmp_path, "accelerators-of-tests", "1.0", {"acc": "accelerators_of_tests"}, {"accelerators_of_tests": SOURCE}
    )
    with installed(site):
        yield


@pytest.fixture
def content() -> bytes:
    """A model of ABS, then NEG."""
    builder = ModelBuilder()
    graph = builder.add_subgraph("main")
    for number in range(3):
        graph.add_tensor(f"t{number}", F32, [2])
    graph.add_operator("ABS", [0], [1])
    graph.add_operator("NEG", [1], [2])
    graph.set_inputs(0)
    graph.set_outputs(2)
    return builder.to_bytes()


def answer(model: CompiledModel) -> list[float]:
    inputs, outputs = model.create_input_buffers(0), model.create_output_buffers(0)
    inputs[0].write(np.array([3, -4], F32))
    for _ in range(2):
        model.run_by_index(0, inputs, outputs)
    found: list[float] = outputs[0].read(2, F32).tolist()
    return found


def applied(model: CompiledModel) -> list[str]:
    return [report.delegate for report in model.interpreter.delegation_reports() if report.partitions]


@pytest.mark.usefixtures("delegates")
@pytest.mark.parametrize(
    ("hardware", "names", "fully"),
    [
        (CPU, [], False),
        (GPU | CPU, ["gpu-of-tests"], False),
        (NPU | CPU, ["npu-of-tests"], False),
        (NPU | GPU | CPU, ["npu-of-tests", "gpu-of-tests"], True),
        (NPU | GPU, ["npu-of-tests", "gpu-of-tests"], True),
    ],
)
def test_delegates_are_chosen_by_their_hardware(
    content: bytes, hardware: HardwareAccelerator, names: list[str], fully: bool
) -> None:
    model = CompiledModel.from_buffer(content, hardware)
    assert applied(model) == names
    assert model.is_fully_accelerated() is fully
    assert answer(model) == [-3, -4]


@pytest.mark.usefixtures("delegates")
def test_without_the_cpu_a_node_that_is_left_over_is_an_error_that_names_it(content: bytes) -> None:
    with pytest.raises(
        CompiledModelError, match=r"Some ops are not accelerated.*\n└ node 1 \(NEG\) is left to the CPU: it is of another kind"
    ):
        CompiledModel.from_buffer(content, GPU)


@pytest.mark.usefixtures("delegates")
def test_a_delegate_of_the_cpu_is_applied_where_it_is_asked_for_alone(content: bytes) -> None:
    for mode, names in (
        (CpuKernelMode.XNNPACK, ["cpu-of-tests"]),
        (None, []),
        (CpuKernelMode.BUILTIN, []),
        (CpuKernelMode.REFERENCE, []),
    ):
        model = CompiledModel.from_buffer(content, options=Options(cpu_options=CpuOptions(1, mode)))
        assert applied(model) == names
        assert model.is_fully_accelerated() is bool(names)
        assert answer(model) == [-3, -4]


def test_hardware_that_is_not_there_falls_back_or_says_what_would_bring_it(tmp_path: Path, content: bytes) -> None:
    source = """
        from oplet import hookimpl
        from plugins.compiled_model.tests.test_hardware import Claims

        @hookimpl
        def register_delegates(registry):
            registry.add("aaa-absent", Claims, accelerates={"npu": {"absent": "1"}})
        """
    with installed(fake_distribution(tmp_path, "absent", "1.0", {"absent": "absent_one"}, {"absent_one": source})):
        with pytest.raises(
            CompiledModelError, match=r"(?s)No installed package runs nodes on NPU here.*aaa-absent: .*there is no such device"
        ):
            CompiledModel.from_buffer(content, NPU)
        model = CompiledModel.from_buffer(content, NPU | CPU)
        assert not model.is_fully_accelerated()
        assert answer(model) == [-3, -4]


def test_no_hardware_and_unknown_hardware_are_refused(content: bytes) -> None:
    with pytest.raises(CompiledModelError, match="No acceleration provided"):
        CompiledModel.from_buffer(content, HardwareAccelerator(0))
    with pytest.raises(CompiledModelError, match="hardware_accel is 64"):
        CompiledModel.from_buffer(content, 64)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="CPU"):
        CompiledModel.from_buffer(content, "CPU")  # type: ignore[arg-type]
    with pytest.raises(CompiledModelError, match="kernel_mode is 5; CpuKernelMode has DELEGATE"):
        CompiledModel.from_buffer(content, options=Options(cpu_options=CpuOptions(kernel_mode=5)))  # type: ignore[arg-type]


@pytest.mark.parametrize("threads", [-3, 0, 1, 2, 10**6])
def test_any_number_of_threads_is_taken(content: bytes, threads: int) -> None:
    assert answer(CompiledModel.from_buffer(content, options=Options(cpu_options=CpuOptions(threads)))) == [-3, -4]


@pytest.mark.parametrize("threads", [1.5, "2", None])
def test_what_is_no_number_of_threads_is_refused(content: bytes, threads: Any) -> None:
    with pytest.raises(TypeError, match="num_threads is"):
        CompiledModel.from_buffer(content, options=Options(cpu_options=CpuOptions(threads)))


def test_kernel_modes_choose_whose_numbers_a_dynamic_range_layer_has() -> None:
    weights = Spec("int8", [2, 3], [0.1], [0], data=[[1, 2, 3], [4, 5, 6]])
    specs = [Spec("float32", [1, 3]), weights], [Spec("float32", [1, 2])]
    content = one_op_model("FULLY_CONNECTED", *specs, FullyConnectedOptions(), version=9)
    for mode, words in (
        (None, "its numbers are XNNPACK's"),
        (CpuKernelMode.BUILTIN, "its numbers are those of LiteRT's own kernels"),
        (CpuKernelMode.REFERENCE, "its numbers are those of LiteRT's own kernels"),
    ):
        model = CompiledModel.from_buffer(content, options=Options(cpu_options=CpuOptions(1, mode)))
        assert words in model.interpreter.explain()[0].why
