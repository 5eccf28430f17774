"""The basic RNN cell over a sequence: state = activation(W input + R state + bias); the state is the output.

Weights are float32, or int8 with activations quantized while the model runs. Numerics: tflite/kernels/internal/kernel_utils.cc
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oplet import Context, Node, Tensor, TensorType, checkpoint, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.operands import all_constant
from oplet.schema.enums import ActivationFunctionType
from oplet_builtin_ops.arithmetic.fused_activations import apply_activation
from oplet_builtin_ops.recurrent.recurrent_products import Product
from oplet_builtin_ops.recurrent.sequences import Layout

__all__ = ["RnnCell", "RnnTensors"]


@dataclass(frozen=True)
class RnnTensors:
    """The tensors of one RNN cell.

    Attributes:
        inputs: weights, (units, input depth).
        recurrent: weights, (units, units).
        bias: (units,).
        state: variable tensor of the last outputs, (batches, units).
        auxiliary: weights of a second input, (units, its depth); None for none.
    """

    inputs: Tensor
    recurrent: Tensor
    bias: Tensor
    state: Tensor
    auxiliary: Tensor | None = None

    @property
    def units(self) -> int:
        """The number of values of the state."""
        return self.inputs.shape[0]

    def check(self, depth: int, batches: int, auxiliary_depth: int = 0) -> None:
        """Check the shapes and types of the cell's tensors.

        Raises:
            EnsureError: a tensor has a wrong shape or type.
        """
        ensure_type(self.inputs, TensorType.FLOAT32, TensorType.INT8, TensorType.UINT8)
        ensure(self.inputs.ndim == 2, f"the input weights {self.inputs} must have 2 dimensions.")
        units = self.units
        for tensor, shape, type, what in (
            (self.inputs, (units, depth), self.inputs.type, "input weights"),
            (self.recurrent, (units, units), self.inputs.type, "recurrent weights"),
            (self.bias, (units,), TensorType.FLOAT32, "bias"),
            (self.state, (batches, units), TensorType.FLOAT32, "hidden state"),
            (self.auxiliary, (units, auxiliary_depth), self.inputs.type, "auxiliary weights"),
        ):
            if tensor is not None:
                ensure(tensor.shape == shape, f"the {what} {tensor} must have shape {list(shape)}.")
                ensure(tensor.type == type, f"the {what} {tensor} must be of type {type.name}.")
        ensure(self.state.is_variable, f"the hidden state {self.state} must be a variable tensor.")


class RnnCell:
    """The plan of one RNN cell that runs over a sequence in one direction."""

    def __init__(
        self,
        context: Context,
        node: Node,
        tensors: RnnTensors,
        layout: Layout,
        activation: ActivationFunctionType,
        asymmetric: bool,
    ) -> None:
        self.tensors, self.layout, self.activation = tensors, layout, activation
        rows, units = layout.steps * layout.batches, tensors.units
        self.inputs = Product(context, node, [tensors.inputs], rows, asymmetric)
        self.recurrent = Product(context, node, [tensors.recurrent], layout.batches, asymmetric)
        self.auxiliary = None
        self.projected = [context.add_temporary(node, (rows, units))]
        if tensors.auxiliary is not None:
            self.auxiliary = Product(context, node, [tensors.auxiliary], rows, asymmetric)
            self.projected.append(context.add_temporary(node, (rows, units)))
        self.next = context.add_temporary(node, (layout.batches, units))

    def thunk(self, source: Tensor, auxiliary: Tensor | None, output: Array, *, backward: bool = False, passes: int = 1) -> Thunk:
        """Return a function that runs the cell over the sequence.

        Args:
            source: the input of all steps.
            auxiliary: the second input, if there are weights for one.
            output: receives the outputs of all steps, in the layout of the input; may be a view.
            backward: whether to run from the last step to the first.
            passes: how many times to run the sequence; the state continues from one pass to the next.
        """
        cell = self.tensors

        def make() -> Thunk:
            return self._bind(source, auxiliary, output, backward, passes)

        fixed = all_constant([cell.inputs, cell.recurrent, cell.bias, cell.auxiliary])
        return make() if fixed else lambda: make()()

    def _bind(self, source: Tensor, auxiliary: Tensor | None, output: Array, backward: bool, passes: int) -> Thunk:
        projected, state, following = self.projected[0].data, self.tensors.state.data, self.next.data
        before = self.inputs.calls(source.data.reshape(len(projected), source.shape[-1]), projected)
        before.append((np.add, (projected, self.tensors.bias.data, projected)))
        if self.auxiliary is not None and auxiliary is not None:
            second = self.projected[1].data
            before += self.auxiliary.calls(auxiliary.data.reshape(len(second), auxiliary.shape[-1]), second)
            before.append((np.add, (projected, second, projected)))
        recurrent, activation = self.recurrent.calls(state, following), self.activation
        inputs = self.layout.steps_of(projected.reshape(*self.layout.shape, self.tensors.units), backward)
        outputs = self.layout.steps_of(output, backward)

        def run() -> None:
            for function, arguments in before:
                function(*arguments)
            for _ in range(passes):
                for seen, given in zip(inputs, outputs):
                    checkpoint()
                    for function, arguments in recurrent:
                        function(*arguments)
                    np.add(following, seen, state)
                    apply_activation(state, activation)
                    given[...] = state

        return run
