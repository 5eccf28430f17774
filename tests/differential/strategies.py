"""What a spec draws from: shapes, types, quantization, values, and whole one-op cases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from oplet import TensorType
from oplet.ops.tensor import numpy_dtype
from oplet.schema.table import Table
from oplet_builtin_ops import VERSIONS
from oplet_testing import one_op_model
from oplet_testing.one_op import Spec

from .harness import Case

T = TypeVar("T")
Shape = tuple[int, ...]

F32, F16, F64 = TensorType.FLOAT32, TensorType.FLOAT16, TensorType.FLOAT64
I8, I16, I32, I64 = TensorType.INT8, TensorType.INT16, TensorType.INT32, TensorType.INT64
U8, U16, U32, U64 = TensorType.UINT8, TensorType.UINT16, TensorType.UINT32, TensorType.UINT64
I4, I2 = TensorType.INT4, TensorType.INT2
BOOL, STRING, C64, C128 = TensorType.BOOL, TensorType.STRING, TensorType.COMPLEX64, TensorType.COMPLEX128

#: Types whose values numpy and LiteRT's Python API both pass around.
FEEDABLE = (F32, I32, I64, I8, U8, I16, BOOL, F16, STRING, U32, U16, U64, F64, C64)
_STRINGS = np.array([b"", b"a", b"b", b"\xff\x00\x01", b"a longer string of many bytes", "ünïcode".encode()], object)
_EDGES = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, 6.0, 1e-6, -3.0, 100.0)
_SPECIAL = (np.nan, np.inf, -np.inf, 3e38, -3e38)
_RANGES = {I4: (-8, 7), I2: (-2, 1)}


@dataclass(repr=False)
class Arg:
    """One tensor of a case.

    Attributes:
        make: draws new values, for a further step.
        constant: whether it is part of the model; fed otherwise.
        flexible: whether it may be declared with another shape and resized.
        alone: whether `make` may be called again for a further step.
    """

    type: TensorType
    shape: Shape
    make: Callable[[], NDArray[Any]] | None = None
    scale: Any = None
    zero_point: Any = None
    axis: int = 0
    constant: bool = False
    variable: bool = False
    flexible: bool = True
    alone: bool = True
    sparsity: Any = None
    data: NDArray[Any] | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        parts = [f"{self.type.name}{list(self.shape)}"]
        if self.constant or self.variable:
            parts.append("constant" if self.constant else "variable")
        if self.scale is not None:
            parts.append(f"{self.scale}, {self.zero_point}" + (f" along {self.axis}" if np.ndim(self.scale) else ""))
        if self.data is not None and self.data.size <= 6 and not self.flexible:
            parts.append(str(self.data.tolist()))
        return f"<{' '.join(parts)}>"

    def values(self) -> NDArray[Any]:
        """The values of the first step."""
        if self.data is None:
            assert self.make is not None
            self.data = self.make()
        return self.data

    def spec(self) -> Spec:
        """As `one_op_model` wants it."""
        data = self.values() if self.constant else None
        return Spec(
            self.type, self.shape, self.scale, self.zero_point, self.axis, data, variable=self.variable, sparsity=self.sparsity
        )


def like(arg: Arg, shape: Sequence[int] = ()) -> Arg:
    """An output of an input's type and quantization."""
    return Arg(arg.type, tuple(shape), scale=arg.scale, zero_point=arg.zero_point, axis=arg.axis)


def out(type: TensorType, shape: Sequence[int] = ()) -> Arg:
    """An output; its shape is the kernel's business."""
    return Arg(type, tuple(shape))


class Draw:
    """Draws the parts of a case. Shapes, types and options come from Hypothesis, values from a seed that it draws."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any], op: str) -> None:
        self.draw = draw
        self.op = op
        self.broken = ""
        self.rng = np.random.default_rng(draw(st.integers(0, 2**20)))

    # Scalars -------------------------------------------------------------------------------------------------

    def pick(self, *options: T) -> T:
        """One of the options; failures shrink towards the first."""
        return options[self.draw(st.integers(0, len(options) - 1))]

    def integer(self, low: int, high: int) -> int:
        """An integer of [low, high]."""
        return int(self.draw(st.integers(low, high)))

    def flag(self) -> bool:
        """True or false."""
        return bool(self.draw(st.booleans()))

    def seldom(self, one_in: int = 10) -> bool:
        """True once in so many times."""
        return self.integer(0, one_in - 1) == one_in - 1

    def type(self, *good: TensorType) -> TensorType:
        """One of the types that the op takes; seldom another, which it has to refuse."""
        if not self.seldom(12):
            return self.pick(*good)
        type = self.pick(*FEEDABLE)
        if type not in good:
            self.broken = "type"
        return type

    # Shapes --------------------------------------------------------------------------------------------------

    def dims(self, count: int, low: int = 1, high: int = 5) -> Shape:
        """So many dimensions."""
        return tuple(self.integer(low, high) for _ in range(count))

    def shape(self, low: int = 0, high: int = 5, largest: int = 5, empty: bool = True) -> Shape:
        """A shape of low to high dimensions; seldom with a 0 in it."""
        shape = list(self.dims(self.integer(low, high), 1, largest))
        if shape and empty and self.seldom(15):
            shape[self.integer(0, len(shape) - 1)] = 0
        return tuple(shape)

    def broadcast(self, count: int = 2, high: int = 4, largest: int = 4) -> list[Shape]:
        """Shapes that broadcast together; seldom some that do not."""
        whole = self.shape(0, high, largest)
        shapes = []
        for _ in range(count):
            how = self.integer(0, 3)
            shape = list(whole)
            if how == 1:
                shape = shape[self.integer(0, len(shape)) :]
            elif how >= 2:
                shape = [1 if self.flag() else dim for dim in shape]
            shapes.append(tuple(shape))
        if whole and self.seldom(25):
            shapes[-1] = tuple(dim + 1 for dim in shapes[-1])
        return shapes

    def axis(self, rank: int) -> int:
        """An axis of a rank, negative ones too; seldom one outside."""
        if self.seldom(15):
            return self.pick(rank, -rank - 1)
        return self.integer(-rank, rank - 1) if rank else 0

    # Values --------------------------------------------------------------------------------------------------

    def values(
        self, type: TensorType, shape: Sequence[int], low: float | None = None, high: float | None = None, special: bool = False
    ) -> NDArray[Any]:
        """Values of a type, its edges among them; within [low, high] where given."""
        rng, shape = self.rng, tuple(shape)
        if type is STRING:
            strings = np.empty(shape, object)
            strings[...] = rng.choice(_STRINGS, shape)
            return strings
        if type is BOOL:
            return rng.integers(0, 2, shape).astype(bool)
        dtype = numpy_dtype(type)
        if dtype.kind == "c":
            return (self._floats(shape, low, high, special) + 1j * self._floats(shape, low, high, special)).astype(dtype)
        if dtype.kind not in "iu":
            return self._floats(shape, low, high, special).astype(dtype)
        return self._integers(type, shape, low, high)

    def _floats(self, shape: Shape, low: float | None, high: float | None, special: bool) -> NDArray[Any]:
        if low is not None and high is not None:
            array = self.rng.uniform(low, high, shape)
            edges: tuple[float, ...] = (low, high)
        else:
            array = self.rng.normal(0, self.rng.choice([0.5, 3.0, 20.0]), shape)
            edges = _EDGES
        if special and self.rng.random() < 0.3:
            edges = edges + _SPECIAL
        array = np.asarray(array)
        chosen = self.rng.random(shape) < self.rng.choice([0.0, 0.1, 0.4])
        return np.where(chosen, self.rng.choice(edges, shape), array)

    def _integers(self, type: TensorType, shape: Shape, low: float | None, high: float | None) -> NDArray[Any]:
        dtype = numpy_dtype(type)
        smallest, largest = _RANGES.get(type, (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)))
        first = smallest if low is None else min(max(int(low), smallest), largest)
        last = largest if high is None else min(max(int(high), first), largest)
        if low is None and high is None and dtype.itemsize > 2 and self.rng.random() < 0.5:
            first, last = max(smallest, -20), min(largest, 20)
        array = self.rng.integers(first, last, shape, dtype=np.int64 if dtype.kind == "i" else np.uint64, endpoint=True)
        edges = np.array([first, last], array.dtype)
        chosen = self.rng.random(shape) < self.rng.choice([0.0, 0.2])
        return np.where(chosen, self.rng.choice(edges, shape), array).astype(dtype)

    # Tensors -------------------------------------------------------------------------------------------------

    def tensor(
        self,
        type: TensorType,
        shape: Sequence[int],
        low: float | None = None,
        high: float | None = None,
        *,
        special: bool = False,
        quantized: bool | None = None,
        constant: bool | None = None,
        symmetric: bool = False,
    ) -> Arg:
        """A tensor of fresh values.

        Args:
            quantized: whether it has a scale; by default the 8- and 16-bit integers have.
            constant: whether it is part of the model; seldom so by default.
            symmetric: whether its zero point is 0.
        """
        shape = tuple(shape)
        arg = Arg(type, shape, lambda: self.values(type, shape, low, high, special))
        arg.constant = self.seldom(8) if constant is None else constant
        if type is STRING and not shape:
            arg.constant = True  # LiteRT's set_tensor takes the address of a scalar bytes object for its text
        if quantized or (quantized is None and type in (I8, U8, I16)):
            arg.scale, arg.zero_point = self.quantization(type, symmetric)
        return arg

    def quantization(self, type: TensorType, symmetric: bool = False) -> tuple[float, int]:
        """A scale and a zero point."""
        scale = self.pick(1.0, 0.5, 0.0078125, 0.02, 0.11, 0.003921569, 1.7)
        if type is I8 and not symmetric:
            return scale, self.pick(0, 1, -1, -128, 127, 13)
        if type is U8:
            return scale, self.pick(128, 0, 255, 127, 101)
        return scale, 0

    def requantized(self, arg: Arg, symmetric: bool = False) -> Arg:
        """An output of an input's type with a quantization of its own, if it has one."""
        if arg.scale is None:
            return out(arg.type)
        scale, zero_point = self.quantization(arg.type, symmetric)
        return Arg(arg.type, (), scale=scale, zero_point=zero_point)

    def given(self, array: Any, type: TensorType = I32, constant: bool | None = None) -> Arg:
        """A tensor of these values: axes, shapes, sizes. Mostly part of the model, as converters make it."""
        data = np.asarray(array).astype(numpy_dtype(type))
        constant = not self.seldom(4) if constant is None else constant
        constant = constant or (type is STRING and not data.shape)
        return Arg(type, data.shape, lambda: data, constant=constant, flexible=False)

    # Cases ---------------------------------------------------------------------------------------------------

    def one_op(
        self,
        inputs: Sequence[Arg | None],
        outputs: Sequence[Arg],
        options: Table | None = None,
        *,
        op: str | None = None,
        version: int | None = None,
        rtol: float = 1e-5,
        atol: float = 1e-6,
        floor: float = 0.0,
        breakable: bool = True,
        intermediates: Sequence[Spec] = (),
        custom_options: bytes = b"",
        steps: int = 0,
    ) -> Case:
        """A model of one node, what to feed it once or twice, and seldom something that is wrong with it."""
        op = op or self.op
        args, made = list(inputs), list(outputs)
        broken = self.broken
        if breakable and not broken and self.seldom(12):
            broken = self._break(args, made)
        specs = [arg.spec() if arg is not None else None for arg in args]
        fed = [arg for arg in args if arg is not None and not arg.constant and not arg.variable]
        if fed and self.seldom(6):  # declared smaller, resized before the first run
            for position, arg in enumerate(args):
                if arg is not None and any(arg is other for other in fed) and arg.flexible and arg.shape:
                    spec = specs[position]
                    assert spec is not None
                    specs[position] = spec._replace(shape=[1] * len(arg.shape), signature=[-1] * len(arg.shape))
        first = [arg.values() for arg in fed]
        feeds = [first]
        for _ in range(steps or self.pick(1, 2) - 1):
            feeds.append([arg.make() if arg.alone and arg.make is not None else arg.values() for arg in fed])
        model = one_op_model(
            op,
            specs,
            [arg.spec() for arg in made],
            options,
            version=version or VERSIONS[op][0],
            intermediates=intermediates,
            custom_options=custom_options,
        )
        note = f"{op} {args} -> {made} {options} {broken}"
        return Case(model, feeds, rtol, atol, floor, broken, note)

    def _break(self, args: list[Arg | None], made: list[Arg]) -> str:
        """Make one thing wrong and say what."""
        present = [position for position, arg in enumerate(args) if arg is not None and not arg.variable]
        if not present:
            return ""
        position = self.pick(*present)
        arg = args[position]
        assert arg is not None
        what = self.pick("type", "output type", "rank", "dimension", "left out", "missing", "extra", "no quantization")
        if what == "type":
            type = self.pick(*FEEDABLE)
            data = self.values(type, arg.shape, -3, 6)  # small ones: they may become a shape
            args[position] = replace(arg, type=type, data=data, make=lambda: data)
        elif what == "output type":
            index = self.integer(0, len(made) - 1)
            made[index] = replace(made[index], type=self.pick(*FEEDABLE))
        elif what == "rank":
            data = arg.values()
            data = data.reshape(*data.shape, 1) if self.flag() or data.ndim == 0 else data[0:1].reshape(-1)
            args[position] = replace(arg, shape=data.shape, data=data, make=lambda: data)
        elif what == "dimension":
            if not arg.shape:
                return ""
            data = arg.values()
            axis = self.integer(0, data.ndim - 1)
            data = np.concatenate([data, data], axis)[(slice(None),) * axis + (slice(0, data.shape[axis] + 1),)]
            args[position] = replace(arg, shape=data.shape, data=data, make=lambda: data)
        elif what == "left out":
            args[position] = None
        elif what == "missing":
            args.pop()
        elif what == "extra":
            args.append(replace(arg))
        elif arg.scale is None:
            return ""
        else:
            args[position] = replace(arg, scale=None, zero_point=None)
        return what


Maker = Callable[[Draw], Case]
#: What draws a case of an operator, by the operator's name.
SPECS: dict[str, Maker] = {}
#: How many times the usual number of examples an operator gets.
WEIGHTS: dict[str, int] = {}


def spec(*ops: str, weight: int = 1) -> Callable[[Maker], Maker]:
    """Declare what draws the cases of one or several operators; `draw.op` says which."""

    def declare(make: Maker) -> Maker:
        for op in ops:
            assert op not in SPECS, f"{op} has two specs"
            SPECS[op] = make
            WEIGHTS[op] = weight
        return make

    return declare
