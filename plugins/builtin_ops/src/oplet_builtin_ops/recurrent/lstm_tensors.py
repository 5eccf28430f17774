"""The tensors of an LSTM: their positions among a node's inputs, and the shapes and types that they must have.

Numerics: CheckInputTensorDimensions in tflite/kernels/lstm.cc, unidirectional_sequence_lstm.cc and bidirectional_sequence_lstm.cc
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from oplet import Node, Tensor, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Shape
from oplet.schema.enums import ActivationFunctionType

__all__ = ["SPARSE_WEIGHTS", "Gate", "LstmSettings", "LstmTensors", "ensure_dense", "read_lstm"]

#: Positions of the weights among a full LSTM's inputs that may be sparse; in LiteRT with float activations.
SPARSE_WEIGHTS = frozenset({*range(1, 9), 16})

_WEIGHTS = (TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8)
_NAMES = ("input", "forget", "cell", "output")


@dataclass(frozen=True)
class LstmSettings:
    """The options that all LSTM ops share.

    Attributes:
        activation: the activation of the cell gate and of the state for the output.
        cell_clip: bound on the cell state; 0 for none.
        projection_clip: bound on the output; 0 for none.
        asymmetric: whether activations are quantized with a zero point, if weights are integers.
    """

    activation: ActivationFunctionType
    cell_clip: float
    projection_clip: float
    asymmetric: bool

    @classmethod
    def of(cls, options: Any) -> LstmSettings:
        """Read the settings from the options table of any LSTM op."""
        clips = options.cell_clip, options.proj_clip
        ensure(
            clips[0] >= 0 and clips[1] >= 0, f"cell_clip is {clips[0]:g} and proj_clip {clips[1]:g}; they may not be negative."
        )
        return cls(options.fused_activation_function, *clips, options.asymmetric_quantize_inputs)


@dataclass(frozen=True)
class Gate:
    """The tensors of one gate: weights, recurrent weights, peephole, bias, normalization.

    Attributes:
        name: input, forget, cell or output.
        inputs: weights, (cells, input depth).
        recurrent: weights, (cells, outputs), or (cells,) for a diagonal matrix.
        bias: (cells,).
        peephole: weights of the cell state, (cells,); None for none, as always at the cell gate.
        norm: layer-norm coefficients, (cells,); None for none.
        auxiliary: weights of a second input, (cells, its depth); None for none.
    """

    name: str
    inputs: Tensor
    recurrent: Tensor
    bias: Tensor
    peephole: Tensor | None
    norm: Tensor | None
    auxiliary: Tensor | None


@dataclass(frozen=True)
class LstmTensors:
    """All tensors of one LSTM: gates, projection, states.

    Attributes:
        input: the input gate; None where it is 1 - forget gate (CIFG).
        forget, cell, output: the other gates.
        projection: weights, (outputs, cells); None if there is no projection and there are as many outputs as cells.
        projection_bias: (outputs,); None for none.
        output_state: variable tensor of the last outputs, (batches, outputs).
        cell_state: variable tensor of the cells' values, (batches, cells).
    """

    input: Gate | None
    forget: Gate
    cell: Gate
    output: Gate
    projection: Tensor | None
    projection_bias: Tensor | None
    output_state: Tensor
    cell_state: Tensor

    @property
    def cells(self) -> int:
        """The number of cells."""
        return self.output.inputs.shape[0]

    @property
    def outputs(self) -> int:
        """The number of output values per step."""
        return self.output.recurrent.shape[-1]

    @property
    def gates(self) -> list[Gate]:
        """The gates in the order in which kernels stack their weights: the sigmoid gates first, the cell gate last."""
        early = [self.forget] if self.input is None else [self.input, self.forget]
        return [*early, self.output, self.cell]

    @property
    def has_peephole(self) -> bool:
        """Whether gates have peephole weights on the cell state."""
        return self.output.peephole is not None

    @property
    def has_norm(self) -> bool:
        """Whether gates are layer-normalized."""
        return self.forget.norm is not None

    def constants(self) -> Iterator[Tensor | None]:
        """Yield all tensors but the states."""
        for gate in self.gates:
            yield from (gate.inputs, gate.recurrent, gate.bias, gate.peephole, gate.norm, gate.auxiliary)
        yield from (self.projection, self.projection_bias)

    def check(self, depth: int, batches: int, *, integer: bool, diagonal: bool = False, auxiliary_depth: int = 0) -> None:
        """Raise an error if a tensor has the wrong shape or type.

        Args:
            depth: the number of features of the input.
            batches: the number of sequences of the input.
            integer: whether activations are int8, which makes biases int32, and peephole and norm weights int16.
            diagonal: whether recurrent weights may be diagonal matrices, stored as float32 vectors.
            auxiliary_depth: the number of features of the second input, if there is one.
        """
        weights = self.forget.inputs.type
        ensure_type(self.forget.inputs, *((TensorType.INT8,) if integer else _WEIGHTS))
        sides, biases = (TensorType.INT16, TensorType.INT32) if integer else (weights, TensorType.FLOAT32)
        norms = TensorType.INT16 if integer else TensorType.FLOAT32
        cells, outputs = self.cells, self.outputs
        for gate in self.gates:
            what = f"the {gate.name} gate's"
            _check(gate.inputs, (cells, depth), weights, f"{what} input weights")
            if diagonal and gate.recurrent.ndim == 1:
                ensure(outputs == cells, f"{gate.recurrent} is a diagonal, but there are {cells} cells and {outputs} outputs.")
                _check(gate.recurrent, (cells,), TensorType.FLOAT32, f"{what} recurrent weights")
            else:
                _check(gate.recurrent, (cells, outputs), weights, f"{what} recurrent weights")
            _check(gate.bias, (cells,), biases, f"{what} bias")
            _check(gate.peephole, (cells,), sides, f"{what} peephole weights")
            _check(gate.norm, (cells,), norms, f"{what} layer-norm coefficients")
            _check(gate.auxiliary, (cells, auxiliary_depth), weights, f"{what} auxiliary weights")
        _check(self.projection, (outputs, cells), weights, "the projection weights")
        _check(self.projection_bias, (outputs,), biases, "the projection bias")
        ensure(self.projection is not None or self.projection_bias is None, "there is a projection bias without weights.")
        ensure(
            self.projection is not None or outputs == cells, f"without projection {cells} cells cannot give {outputs} outputs."
        )
        _check_state(self.output_state, batches * outputs, TensorType.INT8 if integer else TensorType.FLOAT32, "output")
        _check_state(self.cell_state, batches * cells, TensorType.INT16 if integer else TensorType.FLOAT32, "cell")


def _check(tensor: Tensor | None, shape: Shape, type: TensorType, what: str) -> None:
    if tensor is not None:
        ensure(tensor.shape == shape, lambda: f"{what}, {tensor}, must have shape {list(shape)}.")
        ensure(tensor.type == type, lambda: f"{what}, {tensor}, must be of type {type.name}.")


def _check_state(state: Tensor, size: int, type: TensorType, what: str) -> None:
    ensure(state.is_variable, lambda: f"the {what} state {state} must be a variable tensor.")
    ensure(state.size == size, lambda: f"the {what} state {state} must hold {size} values.")
    ensure(state.type == type, lambda: f"the {what} state {state} must be of type {type.name}.")


def _needed(node: Node, position: int, what: str) -> Tensor:
    tensor = node.optional_input(position)
    ensure(tensor is not None, f"input {position}, {what}, is left out (-1) and may not be.")
    return node.inputs[position]


def ensure_dense(node: Node) -> None:
    """Check that weights are not sparse, as LiteRT does not support that for this op.

    Raises:
        EnsureError: a weight tensor is sparse.
    """
    sparse = next((tensor for tensor in node.inputs if tensor is not None and tensor.sparsity is not None), None)
    ensure(sparse is None, lambda: f"{sparse} is stored sparse, which this kind of LSTM does not read.")


def read_lstm(node: Node, first: int, states: int, norms: int | None = None, auxiliary: int | None = None) -> LstmTensors:
    """Find the LSTM's tensors among the inputs of its node.

    Args:
        first: the position of the first weights; the others follow in the order that all LSTM ops have.
        states: the position of the output state, before that of the cell state.
        norms: the position of the layer-norm coefficients, if the node has such inputs.
        auxiliary: the position of the weights of a second input, if the node has such inputs.
    """
    cifg = not node.has_input(first)
    peephole = node.has_input(first + 10)
    use_norm = norms is not None and node.has_input(norms + 1)
    use_auxiliary = auxiliary is not None and node.has_input(auxiliary + 1)
    if cifg:
        for position, what in ((first + 4, "recurrent weights"), (first + 11, "bias")):
            ensure(
                not node.has_input(position), f"input {position}, the input gate's {what}, is given without its input weights."
            )
        if use_norm and norms is not None:
            ensure(
                not node.has_input(norms), f"input {norms}, the input gate's layer-norm coefficients, is given without the gate."
            )
    for position in (first + 8, first + 9):
        given = node.has_input(position) or (cifg and position == first + 8)
        ensure(given or not peephole, f"input {position} is left out (-1), but the output gate has peephole weights.")
        ensure(
            peephole or not node.has_input(position), f"input {position} is given, but the output gate has no peephole weights."
        )

    def gate(index: int) -> Gate:
        name = _NAMES[index]
        side = {0: 8, 1: 9, 3: 10}.get(index)
        return Gate(
            name,
            _needed(node, first + index, f"the {name} gate's input weights"),
            _needed(node, first + 4 + index, f"the {name} gate's recurrent weights"),
            _needed(node, first + 11 + index, f"the {name} gate's bias"),
            node.optional_input(first + side) if side is not None and peephole else None,
            _needed(node, norms + index, f"the {name} gate's layer-norm coefficients")
            if use_norm and norms is not None
            else None,
            _needed(node, auxiliary + index, f"the {name} gate's auxiliary weights")
            if use_auxiliary and auxiliary is not None
            else None,
        )

    lstm = LstmTensors(
        None if cifg else gate(0),
        gate(1),
        gate(2),
        gate(3),
        node.optional_input(first + 15),
        node.optional_input(first + 16),
        _needed(node, states, "the output state"),
        _needed(node, states + 1, "the cell state"),
    )
    for tensor in (lstm.output.inputs, lstm.output.recurrent):
        ensure(1 <= tensor.ndim <= 2, f"{tensor} must have 2 dimensions.")
    return lstm
