"""One-op models of the signal ops, run with this package alone and with tflite-micro's own interpreter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

from oplet import Interpreter, MutableOpResolver
from oplet_signal_ops import register_ops
from oplet_testing import one_op_model
from oplet_testing.one_op import Spec

Array = np.ndarray[Any, Any]
#: The outputs of one invoke.
Outputs = list[Array]

#: The types of the outputs of each op, where they are not the input's.
OUTPUTS = {
    "SignalEnergy": ["uint32"],
    "SignalFftAutoScale": ["int16", "int32"],
    "SignalFilterBank": ["uint64"],
    "SignalFilterBankLog": ["int16"],
    "SignalFilterBankSpectralSubtraction": ["uint32", "uint32"],
    "SignalFilterBankSquareRoot": ["uint32"],
    "SignalFramer": ["int16", "bool"],
    "SignalStacker": ["int16", "bool"],
}


def flexbuffer(options: dict[str, Any]) -> bytes:
    """Options as the converter writes them: a map, one width for all its values."""
    builder = flexbuffers.Builder()
    with builder.Map():
        for key, value in options.items():
            (builder.Bool if isinstance(value, bool) else builder.Int)(key, value)
    return bytes(builder.Finish())


class OneOp:
    """A node of one signal op; its first inputs are fed, the others constant."""

    def __init__(self, op: str, options: dict[str, Any], constants: Sequence[Array] = ()) -> None:
        self.op, self.options, self.constants = op, options, list(constants)

    def model(self, feeds: Sequence[Array], shapes: Sequence[Sequence[int]] | None = None) -> bytes:
        """The model for these inputs; `shapes` of its outputs, which tflite-micro takes from the model."""
        types = OUTPUTS.get(self.op, [feeds[0].dtype.name])
        inputs = [Spec(feed.dtype, feed.shape) for feed in feeds]
        outputs = [Spec(type, shape) for type, shape in zip(types, shapes or [[1]] * len(types))]
        return one_op_model(self.op, [*inputs, *self.constants], outputs, custom_options=flexbuffer(self.options))

    def interpreter(self, feeds: Sequence[Array]) -> Interpreter:
        resolver = MutableOpResolver()
        register_ops(resolver)
        interpreter = Interpreter(model_content=self.model(feeds), op_resolver=resolver, plugins=[])
        interpreter.allocate_tensors()
        return interpreter

    @staticmethod
    def invoke(interpreter: Interpreter, steps: Sequence[Sequence[Array]]) -> list[Outputs]:
        """The outputs of each further invoke of that interpreter."""
        answers = []
        for step in steps:
            for detail, feed in zip(interpreter.get_input_details(), step):
                interpreter.set_tensor(detail["index"], feed)
            interpreter.invoke()
            answers.append([interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()])
        return answers

    def run(self, *steps: Sequence[Array]) -> list[Outputs]:
        """The outputs of each invoke of one interpreter."""
        return self.invoke(self.interpreter(steps[0]), steps)

    def run_once(self, *feeds: Array) -> Any:
        """The outputs of a single invoke; the output itself where there is one."""
        [outputs] = self.run(feeds)
        return outputs if len(outputs) > 1 else outputs[0]

    def run_on_micro(self, *steps: Sequence[Array], reset_after: int = -1) -> list[Outputs]:
        """The same from tflite-micro; the test is skipped where that is missing."""
        runtime = pytest.importorskip("tflite_micro", reason="pip install tflite-micro to compare with its own kernels").runtime
        shapes = [output.shape for output in self.run(steps[0])[0]]
        micro = runtime.Interpreter.from_bytes(self.model(steps[0], shapes), arena_size=1 << 22)
        answers = []
        for number, step in enumerate(steps):
            for index, feed in enumerate(step):
                micro.set_input(feed, index)
            micro.invoke()
            answers.append([np.array(micro.get_output(index)).reshape(shape) for index, shape in enumerate(shapes)])
            if number == reset_after:
                micro.reset()
        return answers

    def check(self, *steps: Sequence[Array]) -> None:
        """Let both run the steps; every output must be the same to the last bit."""
        for ours, theirs in zip(self.run(*steps), self.run_on_micro(*steps)):
            for our, their in zip(ours, theirs):
                np.testing.assert_array_equal(our, their)


@pytest.fixture(scope="session")
def one_op() -> Callable[..., OneOp]:
    """`one_op(name, options, constants)`: a node of that op, its last inputs constant."""
    return OneOp
