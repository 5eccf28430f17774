"""Ways of using a model: a single run, repeated runs, resizing, signatures, descriptions, or writing it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.choices import Choices
from fuzz.engines import Engine
from fuzz.file_mutations import BESIDE
from fuzz.input_values import value_for
from fuzz.watchdog import Watchdog
from oplet import Interpreter, Limits, Model, ModelBuilder

__all__ = ["Run", "make_folder"]

#: Largest input that is set to random values, in bytes; for larger ones the values would dominate the memory use.
_LARGEST_FED = 16 << 20


def make_folder(folder: str) -> None:
    """Write the external files that models opened from this folder may refer to."""
    for name, size in BESIDE.items():
        path = Path(folder, name)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes((np.arange(size, dtype=np.uint32) * 40503 >> 7).astype(np.uint8).tobytes())
    link, pipe = Path(folder, "link.bin"), Path(folder, "pipe.bin")
    if not link.is_symlink():
        link.symlink_to("/etc/hostname")
    if not pipe.exists():
        os.mkfifo(pipe)


class Run:
    """One use of a model, with a record of it.

    Attributes:
        stage: the current stage: "load", "allocate", "feed", "invoke", "read", or the name of another use.
        longest: the most processor time of a stage in seconds; `slowest` is that stage.
        outputs: the outputs that were read, in order.
        runner: the interpreter.
    """

    def __init__(self) -> None:
        self.stage = "load"
        self.longest, self.slowest = 0.0, ""
        self.outputs: list[Any] = []
        self.runner: Any = None
        self._since = time.process_time()
        self._watchdog: Watchdog | None = None
        self._most = 0

    def enter(self, stage: str) -> None:
        """Begin a stage."""
        self.stop()
        self.stage = stage
        if self._watchdog is not None and self.runner is not None:
            self._watchdog.begin(self.runner)

    def stop(self) -> None:
        """End the stage."""
        now = time.process_time()
        if now - self._since > self.longest:
            self.longest, self.slowest = now - self._since, self.stage
        self._since = now

    def begin(
        self, data: bytes, choices: Choices, engine: Engine, limits: Limits, folder: str, watchdog: Watchdog | None
    ) -> None:
        """Construct the interpreter."""
        self._watchdog = watchdog
        told: dict[str, Any] = {
            "limits": limits,
            "experimental_preserve_all_tensors": choices.chance(10),
            "num_threads": 2 if choices.chance(8) else 1,
            "experimental_disable_delegate_clustering": choices.chance(5),
            "release_dynamic_tensors": choices.chance(5),
            "checks": choices.chance(2),
        }
        if folder and (b".bin\0" in data or choices.chance(2)):
            path = os.path.join(folder, "model.tflite")
            Path(path).write_bytes(data)
            self.runner = engine.interpreter(model_path=path, use_mmap=choices.chance(50), **told)
        else:
            self.runner = engine.interpreter(model_content=data, **told)

    def use(self, choices: Choices, plain: bool = False) -> None:
        """Use the model: mostly allocate, invoke and read."""
        runner: Interpreter = self.runner
        signatures = runner.get_signature_list()
        inputs = runner.get_input_details()
        runner.get_output_details()
        if choices.chance(8) and not plain:
            self._resize(inputs, choices)
        self.enter("allocate")
        runner.allocate_tensors()
        self._invoke(inputs, choices)
        if plain:
            return
        kind = choices.below(100)
        if kind < 12:
            self._again(inputs, choices)
        elif kind < 24 and signatures:
            self._signatures(list(signatures), choices)
        elif kind < 32:
            self.enter("resize")
            self._resize(inputs, choices)
            self.enter("allocate")
            runner.allocate_tensors()
            self._invoke(inputs, choices)
        elif kind < 35:
            self._describe()
        elif kind < 38:
            self._write()
        elif kind < 40:
            self.enter("release")
            runner.release_non_persistent_memory()
            self.enter("allocate")
            runner.allocate_tensors()
            self._invoke(inputs, choices)
        elif kind < 42:
            self.enter("undelegate")
            runner.remove_all_delegates()
            runner.allocate_tensors()
            self._invoke(inputs, choices)

    def close(self) -> None:
        """Close the interpreter."""
        if self.runner is not None:
            self.runner.close()

    def asked_for(self) -> int:
        """The most bytes that the tensors had by their shapes, which the default limits allow a model to use."""
        if self.runner is not None:
            found = [tensor for subgraph in self.runner._subgraphs for tensor in subgraph.tensors]
            self._most = max(self._most, sum(tensor.size * tensor.dtype.itemsize for tensor in found if tensor.size > 0))
        return self._most

    def claimed(self) -> bool:
        """Whether a delegate runs any node."""
        return self.runner is not None and any(report.partitions for report in self.runner.delegation_reports())

    def operators(self) -> set[str]:
        """The names of the model's operators."""
        return {node.op_name for subgraph in self.runner._subgraphs for node in subgraph.nodes} if self.runner else set()

    def _invoke(self, inputs: Any, choices: Choices) -> None:
        self.enter("feed")
        for detail in inputs:
            tensor = self.runner._runtime.tensor(detail["index"], 0)
            if not tensor.is_constant and tensor.has_data and tensor.size * tensor.dtype.itemsize <= _LARGEST_FED:
                self.runner.set_tensor(detail["index"], value_for(tensor, choices))
        self.enter("invoke")
        self.runner.invoke()
        self.enter("read")
        for detail in self.runner.get_output_details():
            self.outputs.append(self.runner.get_tensor(detail["index"]))

    def _resize(self, inputs: Any, choices: Choices) -> None:
        self.asked_for()
        for detail in inputs:
            shape = [int(dim) if choices.chance(60) else choices.below(5) for dim in detail["shape"]]
            self.runner.resize_tensor_input(detail["index"], shape, strict=choices.chance(5))

    def _again(self, inputs: Any, choices: Choices) -> None:
        for _ in range(1 + choices.below(2)):
            if choices.chance(30):
                self.runner.reset_all_variables()
            self._invoke(inputs, choices)

    def _signatures(self, keys: list[str], choices: Choices) -> None:
        """Run each signature once or twice, sometimes with other input shapes."""
        for _ in range(1 + choices.below(3)):
            key = choices.choice(keys)
            self.asked_for()
            self.enter("signature")
            runner = self.runner.get_signature_runner(key)
            values = {}
            for name, index in runner._inputs.items():
                tensor = self.runner._runtime.tensor(index, runner._subgraph_index)
                if choices.chance(10):
                    values[name] = np.zeros([choices.below(4) for _ in tensor.shape], tensor.dtype)
                elif tensor.size * tensor.dtype.itemsize <= _LARGEST_FED:
                    values[name] = value_for(tensor, choices)
            self.outputs += runner(**values).values()
            runner.get_output_details()

    def _describe(self) -> None:
        self.enter("describe")
        runner = self.runner
        for describe in (runner.explain, runner.delegation_reports, runner._get_ops_details):
            str(describe())
        for detail in runner.get_tensor_details():
            tensor = runner._runtime.tensor(detail["index"], 0)
            if tensor.has_data and runner._subgraphs[0].still_holds(tensor):
                runner.get_tensor(detail["index"])

    def _write(self) -> None:
        """Check that the model can be written, and read again."""
        self.enter("write")
        write: tuple[Callable[[Model], bytes], ...] = (
            lambda model: ModelBuilder.from_model(model).to_bytes(),
            lambda model: model.to_bytes(),
        )
        for make in write:
            Model.from_bytes(make(self.runner._model))
