"""Build and run a model of a single operator: the shortest way to test a kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oplet import ModelBuilder
from oplet.schema.enums import BuiltinOperator
from oplet.schema.table import Table
from oplet.toolkit import arguments as kinds
from oplet.toolkit import tensor_type

__all__ = ["Spec", "call_op", "invoke", "invoke_steps", "one_op_model", "run_op"]


class Spec(NamedTuple):
    """A tensor of a one-op model.

    Attributes:
        type: a TensorType or a numpy dtype.
        shape: its shape.
        scale: the quantization's scale, one or one per channel; None if the tensor is not quantized.
        zero_point: the zero points, as many as scales.
        axis: the quantized dimension.
        data: the value of a constant; None for an input.
        signature: the shape with -1 for dimensions of any size (`shape_signature`).
        variable: whether it is a variable tensor.
        sparsity: the sparsity table of a sparse constant (its `data` are the stored values).
    """

    type: Any
    shape: Sequence[int]
    scale: Any = None
    zero_point: Any = None
    axis: int = 0
    data: Any = None
    signature: Sequence[int] | None = None
    variable: bool = False
    sparsity: Any = None


_INPUTS = kinds.Kind(
    "a list with a Spec, an array (a constant) or None (left out) for each input",
    lambda value: (
        isinstance(value, (list, tuple))
        and all(each is None or isinstance(each, (Spec, np.ndarray, np.generic)) for each in value)
    ),
)
_FEEDS = kinds.Kind(
    "a list with an array (it is fed), a Spec with data (a constant) or None (left out) for each input", _INPUTS.fits
)
_SPECS = kinds.Kind(
    "a list of Specs", lambda value: isinstance(value, (list, tuple)) and all(isinstance(each, Spec) for each in value)
)
_ARRAYS = kinds.Kind("an array for each input", lambda value: all(isinstance(each, (np.ndarray, np.generic)) for each in value))
_INTERPRETER = kinds.Kind("an interpreter class", callable)


@kinds.takes(
    op=kinds.OPERATOR, inputs=_INPUTS, outputs=_SPECS, options=kinds.OPTIONS, version=kinds.VERSION, intermediates=_SPECS
)
def one_op_model(
    op: BuiltinOperator | str,
    inputs: Sequence[Spec | NDArray[Any] | None],
    outputs: Sequence[Spec],
    options: Table | None = None,
    *,
    version: int = 1,
    custom_options: bytes | Mapping[str, Any] | Sequence[Any] = b"",
    intermediates: Sequence[Spec] = (),
) -> bytes:
    """Return the bytes of a model with one node.

    Args:
        op: a built-in operator, its name, or a custom op's name.
        inputs: one per input: a Spec, a numpy array (a constant), or None for an optional input that is left out.
        outputs: one per output; `prepare` may set another shape than the Spec's.
        options: the options table of a built-in operator.
        version: the op's version.
        custom_options: a custom op's options: bytes, or a dict or list, which is written as FlexBuffers.
        intermediates: one per intermediate tensor (LSTM).

    Raises:
        ModelError: an argument is of another kind, or the parts do not fit each other.

    Examples:
        >>> from oplet_testing import one_op_model
        >>> from oplet_testing.one_op import Spec
        >>> data = one_op_model("RELU", [Spec("float32", [2])], [Spec("float32", [2])])
        >>> data[4:8]
        b'TFL3'
    """
    builder = ModelBuilder(f"one {op if isinstance(op, str) else BuiltinOperator(op).name}")
    graph = builder.add_subgraph()

    given = [add_spec(graph, f"input_{i}", spec) for i, spec in enumerate(inputs)]
    made = [add_spec(graph, f"output_{i}", spec) for i, spec in enumerate(outputs)]
    between = [add_spec(graph, f"intermediate_{i}", spec) for i, spec in enumerate(intermediates)]
    fed = [i for i, spec in zip(given, inputs) if isinstance(spec, Spec) and spec.data is None and not spec.variable]
    graph.set_inputs(*fed)
    graph.set_outputs(*made)
    graph.add_operator(op, given, made, options, version=version, custom_options=custom_options, intermediates=between)
    return builder.to_bytes()


def add_spec(graph: Any, name: str, spec: Spec | NDArray[Any] | None) -> int:
    """Add the tensor of a Spec, or of an array (a constant), to a subgraph; return its index, -1 for None."""
    if spec is None:
        return -1
    if not isinstance(spec, Spec):
        array = np.asarray(spec)
        spec = Spec(array.dtype, array.shape, data=array)
    index: int = graph.add_tensor(
        name,
        tensor_type(spec.type),
        spec.shape,
        data=spec.data,
        scale=spec.scale,
        zero_point=spec.zero_point,
        quantized_dimension=spec.axis,
        shape_signature=spec.signature,
        sparsity=spec.sparsity,
        is_variable=spec.variable,
    )
    return index


@kinds.takes(model=kinds.BYTES, feeds=_ARRAYS, interpreter=_INTERPRETER, resize=kinds.FLAG)
def run_op(
    model: bytes, *feeds: NDArray[Any], interpreter: Any = None, resize: bool = False, **arguments: Any
) -> list[NDArray[Any]]:
    """Run a model once and return its outputs.

    Args:
        model: the bytes of the model.
        feeds: one array per input.
        interpreter: the Interpreter class to use, oplet's own by default; LiteRT's to compare with it.
        resize: give the inputs the shapes of the feeds first.
        arguments: for the interpreter's constructor.
    """
    if interpreter is None:
        from oplet import Interpreter as interpreter
    return invoke(interpreter(model_content=model, **arguments), *feeds, resize=resize)


def invoke(interpreter: Any, *feeds: NDArray[Any], resize: bool = False) -> list[NDArray[Any]]:
    """Run an interpreter once and return copies of its outputs.

    Args:
        interpreter: an Interpreter of oplet, or one of LiteRT to compare with; this function allocates its tensors.
        feeds: one array per input, in their order; inputs beyond these keep their values.
        resize: give the inputs the shapes of the feeds first.

    Examples:
        >>> from oplet import Interpreter
        >>> from oplet_testing import Spec, invoke, one_op_model
        >>> model = one_op_model("ABS", [Spec("float32", [2])], [Spec("float32", [2])])
        >>> [answer] = invoke(Interpreter(model_content=model), np.array([-1, 2], np.float32))
        >>> answer.tolist()
        [1.0, 2.0]
    """
    details = interpreter.get_input_details()
    if resize:
        for detail, feed in zip(details, feeds):
            interpreter.resize_tensor_input(detail["index"], np.shape(feed))
    interpreter.allocate_tensors()
    for detail, feed in zip(details, feeds):
        interpreter.set_tensor(detail["index"], feed)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def invoke_steps(interpreter: Any, steps: Iterable[Sequence[NDArray[Any]]]) -> list[list[NDArray[Any]]]:
    """Run an interpreter once per step and return copies of the outputs of each.

    The tensors are allocated once, before the first step, so that what variable tensors and ops keep goes on from step to step.

    Args:
        interpreter: oplet's, or LiteRT's to compare with it.
        steps: for each run one array per input, in their order; inputs beyond these keep their values.

    Examples:
        >>> from oplet import Interpreter
        >>> from oplet_testing import Spec, invoke_steps, one_op_model
        >>> model = one_op_model("ABS", [Spec("float32", [2])], [Spec("float32", [2])])
        >>> steps = [[np.array([-1, 2], np.float32)], [np.array([3, -4], np.float32)]]
        >>> [outputs[0].tolist() for outputs in invoke_steps(Interpreter(model_content=model), steps)]
        [[1.0, 2.0], [3.0, 4.0]]
    """
    interpreter.allocate_tensors()
    given, made = interpreter.get_input_details(), interpreter.get_output_details()
    results = []
    for feeds in steps:
        for detail, feed in zip(given, feeds):
            interpreter.set_tensor(detail["index"], feed)
        interpreter.invoke()
        results.append([interpreter.get_tensor(detail["index"]) for detail in made])
    return results


@kinds.takes(
    op=kinds.OPERATOR,
    inputs=_FEEDS,
    outputs=_SPECS,
    options=kinds.OPTIONS,
    version=kinds.VERSION,
    intermediates=_SPECS,
    interpreter=_INTERPRETER,
)
def call_op(
    op: BuiltinOperator | str,
    inputs: Sequence[Spec | NDArray[Any] | None],
    outputs: Sequence[Spec],
    options: Table | None = None,
    *,
    version: int = 1,
    custom_options: bytes | Mapping[str, Any] | Sequence[Any] = b"",
    intermediates: Sequence[Spec] = (),
    interpreter: Any = None,
    **arguments: Any,
) -> list[NDArray[Any]]:
    """Build a model with one node, run it once on `inputs`, and return its outputs.

    Args:
        op: a built-in operator, its name, or a custom op's name.
        inputs: an array for an input that is set, a Spec with data for a constant, None for an input that is left out.
        outputs: a Spec for each output; `prepare` may set another shape than the Spec's.
        options: the options table of a built-in operator.
        interpreter: the Interpreter class to use, oplet's own by default.
        arguments: for the interpreter's constructor.

    Examples:
        >>> import numpy as np
        >>> from oplet_testing import Spec, call_op
        >>> call_op("RELU", [np.array([-1, 2], np.float32)], [Spec("float32", [2])])[0].tolist()  # doctest: +SKIP
        [0.0, 2.0]
    """
    specs = [Spec(x.dtype, x.shape) if isinstance(x, np.ndarray) else x for x in inputs]
    model = one_op_model(op, specs, outputs, options, version=version, custom_options=custom_options, intermediates=intermediates)
    feeds = [x for x in inputs if isinstance(x, np.ndarray)]
    return run_op(model, *feeds, interpreter=interpreter, **arguments)
