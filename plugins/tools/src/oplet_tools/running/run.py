"""A single run of a model, on values from files or on random values."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from oplet import Interpreter
from oplet.toolkit import NodeReport
from oplet_tools.running.inputs import load_inputs, notify_of_random
from oplet_tools.running.model_runner import Details, ModelRunner
from oplet_tools.running.values.notices import Notice, NoticeCallback, warn
from oplet_tools.running.values.quantization import dequantize

if TYPE_CHECKING:
    from oplet import Delegate, Model, PluginManager
    from oplet_tools.running.values.preprocessing import Preprocessing

__all__ = ["RunResult", "Value", "run_model"]


@dataclass(frozen=True)
class Value:
    """An input's or output's value."""

    name: str  #: Its name in the signature, or the tensor's name.
    array: NDArray[Any]  #: The value as the tensor holds it.
    details: Details  #: Its dictionary of `Interpreter.get_input_details` or `get_output_details`.
    source: str = ""  #: The file that it came from, "random", or "" for outputs.
    raw: bool = False  #: Whether to show a quantized tensor's integers, not real values.
    notices: tuple[Notice, ...] = ()  #: Notices of what was done to an input.

    @property
    def displayed(self) -> NDArray[Any]:
        """The values to show: the real values of a quantized tensor, unless `raw`.

        Raises:
            TensorError: its quantization cannot be applied.
        """
        return self.array if self.raw else dequantize(self.array, self.details, self.name)


@dataclass(frozen=True)
class RunResult:
    """The result of a run."""

    signature: str  #: The key of the signature that was run, "" for the first subgraph.
    inputs: list[Value]  #: The inputs, in order.
    outputs: list[Value]  #: The outputs, in order.
    #: The number of nodes that each package or delegate ran, by its name and version, separated by a space.
    providers: dict[str, int]
    choice: str = ""  #: The choice of "auto" and its reason, in words; "" without it.
    raw: bool = False  #: Whether values of quantized tensors are integers, not real values.
    model: Model | None = None
    subgraph: int = 0  #: The index of the subgraph that was run.


def run_model(
    model: str | os.PathLike[str] | bytes | memoryview,
    inputs: Sequence[str] = (),
    *,
    signature: str | None = None,
    scale: float | None = None,
    offset: float | None = None,
    preprocessing: Preprocessing | None = None,
    seed: int = 0,
    num_threads: int = 1,
    plugins: PluginManager | None = None,
    delegates: Sequence[Delegate] | str = (),
    use_mmap: bool = True,
    raw: bool = False,
    notify: NoticeCallback = warn,
) -> RunResult:
    """Run a model once.

    Inputs and outputs are real values, unless `raw`: see `oplet_tools.running.values`.

    Args:
        model: the .tflite file, or its bytes.
        inputs: "FILE" or "NAME=FILE" each, see `oplet_tools.running.inputs.load_inputs`; the rest is random.
        signature: the key of the signature to run; if None, the only signature, or the first subgraph if there are several or none.
        scale: pixels of pictures become pixel * scale + offset; None as in `oplet_tools.running.pictures.load_picture`.
        offset: see `scale`.
        preprocessing: the preprocessing of pictures, see `oplet_tools.running.pictures.load_picture`.
        seed: seed of the random values.
        num_threads: threads that kernels may use.
        plugins: the plugins that provide kernels; all installed ones by default.
        delegates: the delegates, in the order in which they claim nodes, or "auto" for the fastest.
        use_mmap: False to read the model's file into memory in place of mapping it.
        raw: whether values of quantized tensors are their integers, in inputs and outputs; otherwise they are real values.
        notify: called with a notice of each change to an input; `Value.notices` has the notices too.

    Raises:
        OpletError: the model, a package or an input is wrong.
        OSError: a file cannot be read.
    """
    content = model if isinstance(model, bytes | memoryview) else None
    interpreter = Interpreter(
        model_path=None if isinstance(model, bytes | memoryview) else model,
        model_content=content,
        num_threads=num_threads,
        plugins=plugins,
        experimental_delegates=delegates,
        use_mmap=use_mmap,
    )
    runner = ModelRunner(interpreter, signature)
    notices: list[Notice] = []

    def note(notice: Notice) -> None:
        notices.append(notice)
        notify(notice)

    given = load_inputs(inputs, runner.inputs, scale=scale, offset=offset, preprocessing=preprocessing, raw=raw, notify=note)
    notify_of_random(given, runner.inputs, note)
    fed = runner.complete(given, seed)
    outputs = runner({name: array for name, (array, _) in fed.items()})
    after = runner.outputs
    return RunResult(
        signature=runner.signature,
        inputs=[
            Value(name, array, runner.inputs[name], source, raw, tuple(notice for notice in notices if notice.input == name))
            for name, (array, source) in fed.items()
        ],
        outputs=[Value(name, array, after[name], raw=raw) for name, array in outputs.items()],
        providers=providers_of(interpreter),
        choice=str(interpreter.choice or ""),
        raw=raw,
        model=interpreter.model,
        subgraph=runner.subgraph_index,
    )


def providers_of(interpreter: Interpreter) -> dict[str, int]:
    """Count the nodes that each package's or delegate's kernels run, by its name and version, in descending order.

    Nodes without a kernel are counted under "nobody".
    """
    return dict(Counter(map(_origin, interpreter.explain())).most_common())


def _origin(report: NodeReport) -> str:
    if report.is_claimed:
        return f"the delegate {report.op}"
    library = f" ({os.path.basename(report.library)})" if report.library else ""
    return (
        f"{report.distribution} {report.distribution_version}" if report.distribution else report.plugin or "nobody"
    ) + library
