"""Models of one operator, systematically: what a recipe is given, and how its tensors become a model that can be fed."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from oplet import TensorType
from oplet.builder import ModelBuilder
from oplet.ops.tensor import numpy_dtype
from oplet.schema.table import Table
from oplet_builtin_ops import VERSIONS

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
T = TensorType

F32, F16, BF16, F64 = T.FLOAT32, T.FLOAT16, T.BFLOAT16, T.FLOAT64
FLOATS = (F32, F16, BF16, F64)
PLAIN = (*FLOATS, T.INT8, T.UINT8, T.INT16, T.UINT16, T.INT32, T.UINT32, T.INT64, T.UINT64, T.BOOL, T.COMPLEX64)
#: Types that LiteRT's Python cannot feed or read: a model casts them from and to float32.
CAST = (BF16, T.INT4, T.INT2, T.UINT4)
QUANTIZED = (T.INT8, T.UINT8, T.INT16, T.INT4)
_RANGES = {T.INT4: (-8, 7), T.INT2: (-2, 1), T.UINT4: (0, 15)}


@dataclass(frozen=True)
class Kind:
    """An element type, quantized or not."""

    type: TensorType
    quantized: bool = False

    def __str__(self) -> str:
        return ("Q" if self.quantized else "") + self.type.name

    @property
    def scale(self) -> float | None:
        """Of a tensor of this kind."""
        return None if not self.quantized else 0.0002 if self.type is T.INT16 else 0.5 if self.type is T.INT4 else 0.05

    @property
    def zero_point(self) -> int | None:
        """Of a tensor of this kind."""
        return None if not self.quantized else 128 if self.type is T.UINT8 else 3 if self.type is T.INT8 else 0


KINDS = [Kind(type) for type in (*PLAIN, T.COMPLEX128, T.STRING, T.INT4)] + [Kind(type, True) for type in QUANTIZED]

#: The kinds that are tried with every rank and without elements.
SHAPED = (Kind(F32), Kind(T.INT32), Kind(T.INT8, True))


@dataclass
class Arg:
    """A tensor of a model.

    Attributes:
        data: its values where it is part of the model.
        fed: its values where it is fed.
        channels: the axis of a scale per channel, None for one scale.
    """

    kind: Kind
    shape: Shape
    data: Array | None = None
    fed: Array | None = None
    scale: float | Sequence[float] | None = None
    zero_point: int | Sequence[int] | None = None
    axis: int = 0


@dataclass
class Single:
    """A model of one operator and what to feed it."""

    name: str
    model: bytes
    feeds: list[Array]
    shape: Shape = ()


@dataclass
class Kit:
    """What a recipe draws from: reproducible values for one operator and one kind.

    Attributes:
        op: the operator.
        kind: of its main tensors.
        shape: of its main tensors, None for the recipe's own choice.
    """

    op: str
    kind: Kind
    shape: Shape | None = None
    label: str = ""
    made: list[Single] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(zlib.crc32(f"{self.op} {self.kind} {self.shape}".encode()))

    def shapes(self, low: int = 0, high: int = 9, usual: Shape = (2, 3, 4)) -> Iterator[Shape]:
        """Shapes for the main tensors: one for every kind, all ranks and empty ones for a few kinds."""
        shapes = [usual]
        if self.kind in SHAPED:
            shapes += [(2, 3, 2, 1, 2, 1, 3, 1, 2, 2)[:rank] for rank in range(low, high + 1) if rank != len(usual)]
            shapes += [
                shape for shape in ((0,), (0, 3), (2, 0, 3), (2, 3, 0), (0, 2, 3, 2), (2, 0, 0, 2)) if low <= len(shape) <= high
            ]
        for shape in shapes:
            self.label = "" if shape == usual else str(list(shape))
            yield shape

    def values(self, shape: Sequence[int], kind: Kind | None = None, low: float = -3.0, high: float = 3.0) -> Array:
        """Values of a kind within [low, high], in steps of the scale where it has one."""
        kind = kind or self.kind
        type, shape = kind.type, tuple(shape)
        if type is T.STRING:
            strings = np.empty(shape, object)
            strings[...] = self.rng.choice(np.array([b"", b"a", b"bc"], object), shape)
            return strings
        if type is T.BOOL:
            return self.rng.integers(0, 2, shape).astype(bool)
        dtype = numpy_dtype(type)
        if dtype.kind in "iu":
            first, last = _RANGES.get(type, (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)))
            if kind.quantized:
                scale, zero = kind.scale or 1.0, kind.zero_point or 0
                low, high = low / scale + zero, high / scale + zero
            first, last = max(first, int(np.ceil(low))), min(last, int(high))
            return self.rng.integers(min(first, last), last, shape, endpoint=True).astype(dtype)
        array = self.rng.uniform(low, high, shape)
        return (array + 1j * self.rng.uniform(low, high, shape) if dtype.kind == "c" else array).astype(dtype)

    def arg(self, shape: Sequence[int], kind: Kind | None = None, low: float = -3.0, high: float = 3.0) -> Arg:
        """A tensor that is fed."""
        kind = kind or self.kind
        return Arg(kind, tuple(shape), fed=self.values(shape, kind, low, high), scale=kind.scale, zero_point=kind.zero_point)

    def constant(self, shape: Sequence[int], kind: Kind | None = None, low: float = -3.0, high: float = 3.0) -> Arg:
        """A tensor that is part of the model."""
        arg = self.arg(shape, kind, low, high)
        arg.data, arg.fed = arg.fed, None
        return arg

    def ints(self, values: Any, type: TensorType = T.INT32) -> Arg:
        """A constant of these integers."""
        data = np.asarray(values, numpy_dtype(type))
        return Arg(Kind(type), data.shape, data=data)

    def out(self, kind: Kind | TensorType | None = None, shape: Sequence[int] = ()) -> Arg:
        """An output."""
        kind = Kind(kind) if isinstance(kind, TensorType) else kind or self.kind
        return Arg(kind, tuple(shape), scale=kind.scale, zero_point=kind.zero_point)

    def add(self, inputs: Sequence[Arg | None], outputs: Sequence[Arg], options: Table | None = None, label: str = "") -> None:
        """Make a model of this operator."""
        name = " ".join(part for part in (self.op, str(self.kind), label or self.label) if part)
        version = VERSIONS[self.op][1]
        builder = ModelBuilder(name)
        graph = builder.add_subgraph()
        fed, feeds, given, results = [], [], [], []
        for number, arg in enumerate(inputs):
            if arg is None:
                given.append(-1)
                continue
            tensor = graph.add_tensor(
                f"input_{number}", arg.kind.type, arg.shape, data=arg.data, scale=arg.scale, zero_point=arg.zero_point,
                quantized_dimension=arg.axis,
            )  # fmt: skip
            given.append(tensor)
            if arg.fed is None:
                continue
            if arg.kind.type in CAST:
                plain = graph.add_tensor(f"float_{number}", F32, arg.shape)
                graph.add_operator("CAST", [plain], [tensor], version=VERSIONS["CAST"][1])
                fed.append(plain)
                feeds.append(arg.fed.astype(np.float32))
            else:
                fed.append(tensor)
                feeds.append(arg.fed)
        for number, arg in enumerate(outputs):
            results.append(
                graph.add_tensor(
                    f"output_{number}",
                    arg.kind.type,
                    arg.shape,
                    scale=arg.scale,
                    zero_point=arg.zero_point,
                    quantized_dimension=arg.axis,
                )
            )
        graph.add_operator(self.op, given, results, options, version=version)
        shown = []
        for number, (arg, tensor) in enumerate(zip(outputs, results)):
            if arg.kind.type in CAST:
                plain = graph.add_tensor(f"result_{number}", F32, arg.shape)
                graph.add_operator("CAST", [tensor], [plain], version=VERSIONS["CAST"][1])
                shown.append(plain)
            else:
                shown.append(tensor)
        graph.set_inputs(*fed)
        graph.set_outputs(*shown)
        self.made.append(Single(name, builder.to_bytes(), feeds))


Recipe = Callable[[Kit], None]
#: What makes the models of an operator.
RECIPES: dict[str, Recipe] = {}


def recipe(*ops: str) -> Callable[[Recipe], Recipe]:
    """Declare what makes the models of some operators."""

    def declare(make: Recipe) -> Recipe:
        for op in ops:
            RECIPES[op] = make
        return make

    return declare


def singles(op: str, kinds: Sequence[Kind] = tuple(KINDS)) -> Iterator[Single]:
    """The models of an operator: every kind in the recipe's shapes."""
    for kind in kinds:
        kit = Kit(op, kind)
        RECIPES[op](kit)
        yield from kit.made
