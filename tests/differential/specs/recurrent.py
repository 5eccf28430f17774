"""Recurrent cells and sequences, run several times so that their state counts."""

from __future__ import annotations

from collections.abc import Sequence

from oplet.schema.enums import LSTMKernelType
from oplet.schema.options import (
    BidirectionalSequenceLSTMOptions,
    BidirectionalSequenceRNNOptions,
    LSTMOptions,
    RNNOptions,
    SequenceRNNOptions,
    SVDFOptions,
    UnidirectionalSequenceLSTMOptions,
)  # fmt: skip
from oplet_testing.one_op import Spec

from ..harness import Case
from ..strategies import F32, I8, I16, I32, U8, Arg, Draw, TensorType, out, spec
from .layers import HYBRID, activation


def _weights(draw: Draw, type: TensorType, shape: Sequence[int]) -> Arg:
    """Constant weights: float, or 8 bits with one scale and no zero point."""
    if type is F32:
        arg = draw.tensor(F32, shape, -1, 1, constant=True)
    else:
        # LiteRT's hybrid kernels add up -128, which 128 is there too, wrongly.
        limits = (-127, 127) if type is I8 else draw.pick((0, 127), (129, 255))
        arg = draw.tensor(type, shape, *limits, constant=True, quantized=False)
        arg.scale, arg.zero_point = draw.pick(0.0078125, 0.004, 0.02), 0
    arg.flexible = False
    return arg


def _vector(draw: Draw, count: int, low: float = -1, high: float = 1) -> Arg:
    arg = draw.tensor(F32, (count,), low, high, constant=True)
    arg.flexible = False
    return arg


def _state(type: TensorType, shape: Sequence[int], scale: float | None = None, zero_point: int = 0) -> Arg:
    return Arg(type, tuple(shape), scale=scale, zero_point=zero_point if scale else None, variable=True, flexible=False)


def _fixed(arg: Arg) -> Arg:
    arg.flexible = False
    return arg


def _tolerances(type: TensorType) -> dict[str, float]:
    return {"rtol": 1e-4, "atol": 1e-5} if type is F32 else {"rtol": HYBRID, "atol": HYBRID}


@spec("RNN", "UNIDIRECTIONAL_SEQUENCE_RNN", weight=2)
def rnn(draw: Draw) -> Case:
    kind = draw.pick(F32, I8, U8)
    batch, size, units = draw.dims(3)
    sequence = draw.op != "RNN"
    time_major = draw.flag()
    shape = (batch, size)
    if sequence:
        steps = draw.integer(1, 4)
        shape = (steps, batch, size) if time_major else (batch, steps, size)  # type: ignore[assignment]
    x = _fixed(draw.tensor(F32, shape, -2, 2, constant=False))
    bias = _vector(draw, units)
    asymmetric = draw.flag()
    chosen = activation(draw, 0, 1, 2, 3, 4)
    args = [x, _weights(draw, kind, (units, size)), _weights(draw, kind, (units, units)), bias, _state(F32, (batch, units))]
    if sequence:
        options = SequenceRNNOptions(
            time_major=time_major, fused_activation_function=chosen, asymmetric_quantize_inputs=asymmetric
        )
        return draw.one_op(args, [out(F32)], options, **_tolerances(kind), steps=2)
    cell = RNNOptions(fused_activation_function=chosen, asymmetric_quantize_inputs=asymmetric)
    return draw.one_op(args, [out(F32)], cell, **_tolerances(kind), steps=2)


@spec("BIDIRECTIONAL_SEQUENCE_RNN", weight=2)
def bidirectional_rnn(draw: Draw) -> Case:
    kind = draw.pick(F32, I8, U8)
    batch, size, forward, backward, steps = draw.dims(5, 1, 4)
    time_major, merge = draw.flag(), draw.flag()
    if merge and not time_major:
        batch = 1  # LiteRT writes the outputs of further batches beside their place
    x = _fixed(draw.tensor(F32, (steps, batch, size) if time_major else (batch, steps, size), -2, 2, constant=False))
    args: list[Arg | None] = [x]
    for units in (forward, backward):
        args += [_weights(draw, kind, (units, size)), _weights(draw, kind, (units, units)), _vector(draw, units)]
        args.append(_state(F32, (batch, units)))
    if draw.seldom(3):  # another input, with weights of its own or in place of the backward one
        other = draw.integer(1, 4)
        weighted = draw.flag()
        # LiteRT steps through the other input by the size of the first, but for batch-major floats.
        other = other if weighted and kind is F32 and not time_major else size
        shape = (steps, batch, other) if time_major else (batch, steps, other)
        args.append(_fixed(draw.tensor(F32, shape, -2, 2, constant=False)))
        args += [_weights(draw, kind, (units, other)) if weighted else None for units in (forward, backward)]
    else:
        args += [None] * 3
    options = BidirectionalSequenceRNNOptions(
        time_major=time_major, fused_activation_function=activation(draw, 0, 1, 4), merge_outputs=merge,
        asymmetric_quantize_inputs=draw.flag(),
    )  # fmt: skip
    return draw.one_op(args, [out(F32)] if merge else [out(F32), out(F32)], options, **_tolerances(kind), steps=2)


@spec("SVDF", weight=2)
def svdf(draw: Draw) -> Case:
    kind = draw.pick(F32, I8, U8, I16)
    batch, size, units, rank, memory = draw.dims(5, 1, 4)
    filters = units * rank
    options = SVDFOptions(rank=rank, fused_activation_function=activation(draw, 0, 1), asymmetric_quantize_inputs=draw.flag())
    if kind is I16:  # all integer
        x = _fixed(draw.tensor(I8, (batch, size), constant=False))
        x.scale = draw.pick(0.0078125, 0.05)
        feature = _weights(draw, I8, (filters, size))
        time = _fixed(draw.tensor(I16, (filters, memory), constant=True, symmetric=True))
        bias = _fixed(draw.tensor(I32, (units,), -4000, 4000, constant=True, quantized=False))
        time.scale, state = draw.pick(0.0001, 0.001), _state(time.type, (batch, memory * filters), draw.pick(0.001, 0.01))
        bias.scale, bias.zero_point = time.scale * state.scale, 0
        y = Arg(I8, (), scale=draw.pick(0.01, 0.1), zero_point=draw.pick(0, -5))
        options.fused_activation_function = activation(draw, 1)
        return draw.one_op([x, feature, time, bias if draw.flag() else None, state], [y], options, steps=2)
    x = _fixed(draw.tensor(F32, (batch, size), -2, 2, constant=False))
    args = [x, _weights(draw, kind, (filters, size)), _weights(draw, kind, (filters, memory))]
    bias_or_none = _vector(draw, units) if draw.flag() else None
    return draw.one_op(
        [*args, bias_or_none, _state(F32, (batch, memory * filters))], [out(F32)], options, **_tolerances(kind), steps=2
    )


class Gates:
    """The parts of one direction of an LSTM in float or hybrid arithmetic."""

    def __init__(self, draw: Draw, kind: TensorType, batch: int, size: int) -> None:
        self.draw, self.kind, self.batch, self.size = draw, kind, batch, size
        self.cells = draw.integer(1, 4)
        self.projected = draw.seldom(3)
        self.units = draw.integer(1, 4) if self.projected else self.cells
        self.coupled = draw.seldom(3)
        self.peepholes = draw.seldom(3)

    def four(self, columns: int) -> list[Arg | None]:
        """A matrix for each gate; none for the input gate where it is coupled with the forget gate."""
        gates: list[Arg | None] = [_weights(self.draw, self.kind, (self.cells, columns)) for _ in range(4)]
        return [None, *gates[1:]] if self.coupled else gates

    def parts(self) -> list[Arg | None]:
        """The 17 operands from the input's weights to the projection's bias."""
        draw, cells = self.draw, self.cells
        peepholes: list[Arg | None] = [None] * 3
        if self.peepholes:
            peepholes = [_weights(draw, self.kind, (cells,)) for _ in range(3)]
            if self.coupled:
                peepholes[0] = None
        biases: list[Arg | None] = [_vector(draw, cells) for _ in range(4)]
        if self.coupled:
            biases[0] = None
        projection: list[Arg | None] = [None, None]
        if self.projected:
            projection[0] = _weights(draw, self.kind, (self.units, cells))
            projection[1] = _vector(draw, self.units) if draw.flag() else None
        return [*self.four(self.size), *self.four(self.units), *peepholes, *biases, *projection]

    def states(self) -> list[Arg | None]:
        """Activation and cell."""
        return [_state(F32, (self.batch, self.units)), _state(F32, (self.batch, self.cells))]

    def norms(self) -> list[Arg | None]:
        """Layer normalization, or not."""
        if self.draw.seldom(3):
            norms: list[Arg | None] = [_vector(self.draw, self.cells, 0.1, 1) for _ in range(4)]
            return [None, *norms[1:]] if self.coupled else norms
        return [None] * 4


def _clips(draw: Draw) -> dict[str, float]:
    return {"cell_clip": draw.pick(0.0, 0.0, 1.0, 10.0), "proj_clip": draw.pick(0.0, 0.0, 0.5)}


@spec("LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM", weight=4)
def lstm(draw: Draw) -> Case:
    sequence = draw.op != "LSTM"
    kind = draw.pick("float", "hybrid", "integer", "basic") if not sequence else draw.pick("float", "hybrid", "integer")
    if kind == "basic":
        return _basic_lstm(draw)
    batch, size = draw.dims(2, 1, 4)
    time_major, shape = draw.flag(), (batch, size)
    if sequence:
        steps = draw.integer(1, 4)
        shape = (steps, batch, size) if time_major else (batch, steps, size)  # type: ignore[assignment]
    common = {"fused_activation_function": activation(draw, 4), "asymmetric_quantize_inputs": draw.flag(), **_clips(draw)}
    options = UnidirectionalSequenceLSTMOptions(time_major=time_major, **common) if sequence else LSTMOptions(**common)
    if kind == "integer":
        return _integer_lstm(draw, shape, batch, size, options)
    type = F32 if kind == "float" else draw.pick(I8, U8)
    gates = Gates(draw, type, batch, size)
    x = _fixed(draw.tensor(F32, shape, -2, 2, constant=False))
    args = [x, *gates.parts(), *gates.states(), *gates.norms()]
    if not draw.flag() and all(arg is None for arg in args[20:]):
        args = args[:20]
    return draw.one_op(args, [out(F32)], options, **_tolerances(type), steps=2)


def _integer_lstm(draw: Draw, shape: tuple[int, ...], batch: int, size: int, options: object) -> Case:
    """8-bit activations and weights, 16-bit cell."""
    cells = draw.integer(1, 4)
    projected, coupled, peepholes, normed = draw.seldom(3), draw.seldom(3), draw.seldom(3), draw.seldom(3)
    units = draw.integer(1, 4) if projected else cells
    x = _fixed(draw.tensor(I8, shape, constant=False))
    x.scale, x.zero_point = draw.pick(0.0078125, 0.02), draw.pick(0, -3, 11)
    input_scale = x.scale

    def matrix(*dims: int) -> Arg:
        return _weights(draw, I8, dims)

    def vector(type: TensorType, count: int, scale: float) -> Arg:
        arg = _fixed(draw.tensor(type, (count,), -4000, 4000, constant=True, quantized=False))
        arg.scale, arg.zero_point = scale, 0
        return arg

    def four(make: object, low: int = 0) -> list[Arg | None]:
        made: list[Arg | None] = [make() for _ in range(4 - low)]  # type: ignore[operator]
        if coupled and not low:
            made[0] = None
        return made

    output = Arg(I8, (), scale=draw.pick(0.0078125, 0.005), zero_point=draw.pick(0, 4))
    peephole = [vector(I16, cells, 0.0001) if peepholes else None for _ in range(3)]
    if coupled:
        peephole[0] = None
    biases = four(lambda: vector(I32, cells, input_scale * 0.004))
    norms: list[Arg | None] = four(lambda: vector(I16, cells, 1 / 4096)) if normed else [None] * 4
    projection: list[Arg | None] = [None, None]
    if projected:
        projection = [matrix(units, cells), vector(I32, units, 0.0001) if draw.flag() else None]
    states: list[Arg | None] = [
        _state(I8, (batch, units), output.scale, output.zero_point), _state(I16, (batch, cells), 2.0 ** -draw.pick(11, 15, 12)),
    ]  # fmt: skip
    args = [x, *four(lambda: matrix(cells, size)), *four(lambda: matrix(cells, units)), *peephole, *biases, *projection]
    between = [Spec(I16, (0,), draw.pick(0.002, 1 / 4096, 0.005), 0) for _ in range(4)]
    between.append(Spec(I8, (0,), draw.pick(0.0078125, 0.004), draw.pick(0, -2)))
    return draw.one_op([*args, *states, *norms], [output], options, intermediates=between, steps=2)  # type: ignore[arg-type]


def _basic_lstm(draw: Draw) -> Case:
    """The first LSTM of the format: one matrix for all gates; float, or 8 bits with a 16-bit cell."""
    batch, size, units = draw.integer(1, 3), draw.integer(1, 4), draw.integer(1, 4)
    options = LSTMOptions(kernel_type=LSTMKernelType.BASIC, fused_activation_function=activation(draw, 4))
    if draw.flag():
        x = _fixed(draw.tensor(F32, (batch, size), -2, 2, constant=False))
        before, cell = (_fixed(draw.tensor(F32, (batch, units), -1, 1, constant=False)) for _ in range(2))
        args = [x, before, _weights(draw, F32, (4 * units, units + size)), _vector(draw, 4 * units), cell]
        return draw.one_op(args, [out(F32)] * 4, options, rtol=1e-4)
    size, units = draw.integer(1, 4), 8 * draw.integer(1, 2)
    size = 8 * draw.integer(1, 2) if draw.flag() else size
    x, before = (_fixed(draw.tensor(U8, (batch, n), constant=False)) for n in (size, units))
    x.scale = before.scale = 1 / 128
    x.zero_point = before.zero_point = 128
    matrix = _fixed(draw.tensor(U8, (4 * units, units + size), constant=True))
    matrix.scale, matrix.zero_point = draw.pick(0.02, 0.0078125), draw.pick(128, 120)
    bias = _fixed(draw.tensor(I32, (4 * units,), -4000, 4000, constant=True, quantized=False))
    bias.scale, bias.zero_point = matrix.scale / 128, 0
    cell = _fixed(draw.tensor(I16, (batch, units), constant=False))
    cell.scale, cell.zero_point = 1 / 2048, 0
    eight, sixteen = Arg(U8, (), scale=1 / 128, zero_point=128), Arg(I16, (), scale=1 / 2048, zero_point=0)
    outputs = [eight, sixteen, Arg(U8, (), scale=1 / 128, zero_point=128), Arg(I16, (), scale=1 / 4096, zero_point=0)]
    return draw.one_op([x, before, matrix, bias, cell], outputs, options)


@spec("BIDIRECTIONAL_SEQUENCE_LSTM", weight=3)
def bidirectional_lstm(draw: Draw) -> Case:
    type = draw.pick(F32, I8, U8)
    batch, size, steps = draw.integer(1, 3), draw.integer(1, 4), draw.integer(1, 4)
    time_major, merge = draw.flag(), draw.flag()
    if merge and not time_major:
        batch = 1  # LiteRT writes the states of further batches beside their place
    x = _fixed(draw.tensor(F32, (steps, batch, size) if time_major else (batch, steps, size), -2, 2, constant=False))
    forward, backward = Gates(draw, type, batch, size), Gates(draw, type, batch, size)
    # LiteRT takes the numbers of cells and outputs from the forward part for both.
    backward.cells, backward.units, backward.projected = forward.cells, forward.units, forward.projected
    args = [x, *forward.parts(), *backward.parts(), *forward.states(), *backward.states()]
    if draw.seldom(3):
        weighted = draw.flag()
        other = draw.integer(1, 4) if weighted else size
        shape = (steps, batch, other) if time_major else (batch, steps, other)
        args.append(_fixed(draw.tensor(F32, shape, -2, 2, constant=False)))
        for gates in (forward, backward):
            args += gates.four(other) if weighted else [None] * 4
    else:
        args += [None] * 9
    options = BidirectionalSequenceLSTMOptions(
        fused_activation_function=activation(draw, 4), merge_outputs=merge, time_major=time_major,
        asymmetric_quantize_inputs=draw.flag(), **_clips(draw),
    )  # fmt: skip
    return draw.one_op(args, [out(F32)] if merge else [out(F32), out(F32)], options, **_tolerances(type), steps=2)
