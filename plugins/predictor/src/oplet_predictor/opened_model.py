"""An interpreter for a fixed number of rows, whose inputs and outputs are columns; used by Predictor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from oplet import Interpreter, Tensor
from oplet.errors import ModelError, OpletError, SignatureError
from oplet.schema.enums import BuiltinOperator
from oplet.toolkit import Subgraph, SubgraphRunner, named_subgraphs
from oplet_predictor.columns import Collected, Column, Rows, input_column, named, output_column

__all__ = ["OpenedModel", "fresh_opened"]

Array = NDArray[Any]


class OpenedModel:
    """An interpreter that runs one signature, or the first subgraph, on a fixed number of rows.

    Attributes:
        interpreter: the interpreter.
        subgraph: the subgraph that is run.
        inputs: the inputs by name, in the model's order.
        outputs: the outputs by name, in the model's order; valid after `allocate`.
        size: the number of rows of one run.

    Args:
        interpreter: the interpreter, which must not be used otherwise.
        signature: the key of the signature; None for the only one, or the first subgraph if there are several or none.
        size: the number of rows of one run.

    Raises:
        SignatureError: there is no such signature.
        ModelError: the model keeps state between runs, which rows would share.
    """

    def __init__(self, interpreter: Interpreter, signature: str | None, size: int = 1) -> None:
        self.interpreter = interpreter
        self.size = size
        keys = list(interpreter.get_signature_list())
        if signature is None and len(keys) == 1:
            [signature] = keys
        index, inputs, outputs = 0, None, None
        if signature is not None:
            listed = interpreter.get_signature_runner(signature)  # refuses an unknown key
            listed.ensure_usable()
            index, inputs, outputs = listed.subgraph_index, listed.get_input_details(), listed.get_output_details()
        self._runner = SubgraphRunner(interpreter, index)
        self.subgraph: Subgraph = self._runner.subgraph
        _refuse_shared_state(interpreter, self.subgraph)
        self._input_tensors = self._tensors(inputs, self.subgraph.inputs)
        self._output_tensors = self._tensors(outputs, self.subgraph.outputs)
        details = self._runner.details
        self.inputs = {n: input_column(n, t, details(t.index)) for n, t in self._input_tensors.items()}
        self.outputs: dict[str, Column] = {}
        self._resets = True
        if not self.inputs:
            raise SignatureError(f"{interpreter.model.name} has no inputs, so there are no rows to run it on.")

    def _tensors(self, details: dict[str, dict[str, Any]] | None, order: Sequence[int]) -> dict[str, Tensor]:
        tensors = self.subgraph.tensors
        if details is None:
            return named([tensors[index] for index in order])
        position = {index: place for place, index in reversed(list(enumerate(order)))}
        names = sorted(details, key=lambda name: position.get(details[name]["index"], len(order)))
        return {name: tensors[details[name]["index"]] for name in names}

    def allocate(self) -> None:
        """Allocate for `size` rows; dimensions inside a row that are free (-1) keep the model's sizes.

        Raises:
            OpletError: the model cannot be allocated for so many rows.
        """
        for name, tensor in self._input_tensors.items():
            if self.inputs[name].fills_batch and tensor.shape[0] != self.size:
                self._runner.resize(tensor.index, (self.size, *tensor.shape[1:]))
        self._runner.allocate()
        self._describe_outputs()
        self._resets = self.has_variables

    def _describe_outputs(self) -> None:
        details = self._runner.details
        tensors = self._output_tensors.items()
        self.outputs = {name: output_column(name, tensor, details(tensor.index)) for name, tensor in tensors}

    @property
    def has_variables(self) -> bool:
        """Whether a value is kept between runs, in a variable or in a kernel's persistent scratch. Valid after `allocate`."""
        subgraphs = self.interpreter.subgraphs
        return any(
            subgraph.variables or any(tensor.is_variable for node in subgraph.nodes for tensor in node.temporaries)
            for subgraph in subgraphs
        )

    def run(self, values: Sequence[Array]) -> list[Array]:
        """Run the model, its variables reset, on one value per input; return views of outputs, which the next run overwrites.

        Raises:
            OpletError: a value is refused, or a kernel fails.
        """
        runner = self._runner
        for tensor, value in zip(self._input_tensors.values(), values):
            if tensor.shape != value.shape:
                runner.resize(tensor.index, value.shape)
        if not self.subgraph.ready:
            runner.allocate()
            self._resets = self.has_variables
        for tensor, value in zip(self._input_tensors.values(), values):
            runner.set(tensor.index, value)
        if self._resets:
            self.interpreter.reset_all_variables()
        runner.invoke()
        return [runner.tensor(tensor.index).data for tensor in self._output_tensors.values()]

    def run_row(self, rows: Rows, row: int, collected: Sequence[Collected], place: int) -> None:
        """Run one row, and store its outputs in `collected`, one for each output, as row number `place`."""
        for output, value in zip(collected, self.run(rows.one(row))):
            output.put(place, value)

    def run_batch(self, rows: Rows, start: int, stop: int, collected: Sequence[Collected]) -> None:
        """Run rows `start` to `stop` (excluded) as a batch of `size` rows, and store their outputs in `collected`."""
        for output, value in zip(collected, self.run(rows.several(start, stop, self.size))):
            output.put_several(start, stop, value, self.size)

    def collect(self, count: int) -> list[Collected]:
        """Make an empty collector of `count` rows for each output."""
        return [Collected(column, count) for column in self.outputs.values()]

    def cancel(self) -> None:
        """Cancel the run that another thread is in, if any."""
        self.interpreter.cancel()

    def close(self) -> None:
        """Close the interpreter."""
        self.interpreter.close()


def fresh_opened(interpreter: Interpreter, signature: str | None, size: int = 1) -> OpenedModel:
    """Allocate an interpreter for `size` rows, and return it as an OpenedModel; the interpreter is closed if that fails."""
    try:
        opened = OpenedModel(interpreter, signature, size)
        try:
            opened.allocate()
        except OpletError:
            if size != 1:
                raise
            opened._describe_outputs()  # only the rows give it shapes that it runs with: the first run allocates
    except BaseException:
        interpreter.close()
        raise
    return opened


def _refuse_shared_state(interpreter: Interpreter, subgraph: Subgraph) -> None:
    """Refuse a model that assigns resource variables while it runs: a row's outputs would depend on the rows before it.

    Raises:
        ModelError: the model assigns some.
    """
    seen, waiting = {subgraph.index}, [subgraph]
    while waiting:
        each = waiting.pop()
        for node in each.nodes:
            if node.op is BuiltinOperator.ASSIGN_VARIABLE:
                raise ModelError(
                    f"{interpreter.model.name} assigns a resource variable while it runs (node {node.index} of subgraph {each.index}), so "
                    "that its rows depend on one another; run it with an Interpreter."
                )
            if node.op is not BuiltinOperator.CALL_ONCE:  # which sets variables to their first values
                for index in set(named_subgraphs(node.raw_options)) - seen:
                    seen.add(index)
                    waiting.append(interpreter.subgraphs[index])
