"""Nodes that no converter writes: each operator gives outputs or refuses, in time, within its memory, and by oplet's own errors."""

from __future__ import annotations

import random
import re
import time
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from plugins.flex_ops.tests.nodedefs import flex_options
from tests.places import SWEEP

from oplet import Interpreter, Limits, MutableOpResolver, TensorType
from oplet.errors import OpletError
from oplet_flex_ops import OPS, register_ops
from oplet_flex_ops.lists.tensor_list import TensorList
from oplet_flex_ops.tables import Table
from oplet_testing import Spec, invoke, one_op_model

Array = NDArray[Any]

#: All operators of the package, in an order that does not change.
NAMES = sorted(op for modules in OPS.values() for ops in modules.values() for op in ops.split())
#: What a run may take. Outputs of thousands of times the inputs' size are refused by it.
LIMITS = Limits(max_arena_bytes=64 << 20, max_tensor_bytes=32 << 20, max_seconds=5.0)
#: Seconds of the processor after which a node counts as one that hangs: the deadline of its run is far below it.
LONGEST = 20.0

TYPES = [TensorType.FLOAT32, TensorType.INT32, TensorType.INT64, TensorType.STRING, TensorType.BOOL, TensorType.FLOAT64]
RARE = [TensorType.UINT8, TensorType.COMPLEX64, TensorType.VARIANT, TensorType.RESOURCE, TensorType.FLOAT16, TensorType.INT8]
SHAPES: list[tuple[int, ...]] = [
    (),
    (),
    (1,),
    (2,),
    (3,),
    (4,),
    (0,),
    (2, 2),
    (3, 3),
    (2, 3),
    (1, 4, 4, 1),
    (2, 0),
    (2, 3, 2),
    (1, 2, 4, 4, 1),
]
NUMBERS = [0, 1, 1, 2, 3, -1, -2, 4, 100, 2**31 - 1, -(2**31), 2**63 - 1]
WORDS: list[bytes] = [
    b"",
    b"a",
    b"abc",
    b"SAME",
    b"VALID",
    b"NHWC",
    b"REFLECT",
    b"(",
    b"a*|b",
    b"UTF-8",
    b"-1",
    b"\xff\x00",
    b"1e5",
    b"ij,jk->ik",
    b"x" * 300,
]
#: Attributes whose values decide which types a node takes.
TYPED = [
    "T",
    "dtype",
    "element_dtype",
    "out_type",
    "Tin",
    "Tout",
    "Tidx",
    "Tindices",
    "Tshape",
    "shape_type",
    "key_dtype",
    "value_dtype",
]


def _attributes_named(module: str) -> set[str]:
    """The names of attributes that an operator's module mentions: string literals that are arguments of the readers of `Attributes`."""
    import ast
    import importlib

    source = importlib.import_module(module).__file__ or ""
    with open(source) as file:
        tree = ast.parse(file.read())
    return {
        node.value for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier() and len(node.value) < 40
    }  # fmt: skip


_NAMED: dict[str, list[str]] = {}


def _names(op: str) -> list[str]:
    if op not in _NAMED:
        [home] = (f"{family}.{module}" for family, modules in OPS.items() for module, ops in modules.items() if op in ops.split())
        _NAMED[op] = sorted(_attributes_named(f"oplet_flex_ops.ops.{home}") | set(TYPED))
    return _NAMED[op]


def _dtype(type: TensorType) -> Any:
    return ml_dtypes.bfloat16 if type is TensorType.BFLOAT16 else type.name.lower()


class Mutant:
    """A random node: attributes that its operator reads, with values of any kind, and inputs of any type, shape and value."""

    def __init__(self, op: str, seed: int) -> None:
        self.op, choose = op, random.Random(f"{op} {seed}")
        self._choose = choose
        kind = choose.choice(TYPES if choose.random() < 0.85 else RARE)
        shape = choose.choice(SHAPES)
        self.attributes: dict[str, Any] = {}
        for name in _names(op):
            if choose.random() < 0.85:
                self.attributes[name] = self._value(name, kind)
        count = choose.choice([1, 1, 2, 2, 2, 3, 3, 4, 0, 5, 6])
        self.inputs = []
        for _ in range(count):
            type = kind if choose.random() < 0.5 else choose.choice(TYPES if choose.random() < 0.9 else RARE)
            self.inputs.append(self._input(type, shape if choose.random() < 0.5 else choose.choice(SHAPES)))
        self.outputs = [
            kind if choose.random() < 0.5 else choose.choice(TYPES + RARE) for _ in range(choose.choice([1, 1, 1, 2, 3, 0]))
        ]
        self.options = flex_options(op, self.attributes)
        if choose.random() < 0.1:
            self.options = self._damaged(self.options)

    def _value(self, name: str, kind: TensorType) -> Any:
        choose, roll = self._choose, self._choose.random()
        typed = name[0] == "T" or name.endswith(("type", "types"))
        if typed and roll < 0.9:
            type = kind if choose.random() < 0.6 else choose.choice(TYPES)
            return [type] * choose.randrange(4) if name.endswith("types") or choose.random() < 0.05 else type
        makers = [
            lambda: choose.choice(NUMBERS), lambda: choose.random() < 0.5, lambda: choose.choice(WORDS),
            lambda: choose.choice([0.0, 1.0, -1.0, 0.5, 1e30, float("nan")]),
            lambda: [choose.choice(NUMBERS) for _ in range(choose.randrange(6))],
            lambda: choose.choice(SHAPES), lambda: None, lambda: (-1, 2),
        ]  # fmt: skip
        return choose.choice(makers)()

    def _input(self, type: TensorType, shape: tuple[int, ...]) -> Spec:
        choose, size = self._choose, int(np.prod(shape))
        data: Any = None
        if type in (TensorType.VARIANT, TensorType.RESOURCE):
            shape = () if choose.random() < 0.7 else shape
            return Spec(type, shape)
        if type is TensorType.STRING:
            data = np.empty(shape, object)
            data.reshape(-1)[:] = [choose.choice(WORDS) for _ in range(size)]
        else:
            numbers = [choose.choice(NUMBERS) if choose.random() < 0.3 else choose.randrange(-2, 5) for _ in range(size)]
            with np.errstate(all="ignore"):
                data = np.array(numbers, np.int64).astype(_dtype(type)).reshape(shape)
            if data.dtype.kind in "fc" and size and choose.random() < 0.2:
                data.reshape(-1)[choose.randrange(size)] = choose.choice([np.nan, np.inf, -np.inf, 1e-30])
        return Spec(type, shape, data=data)

    def _damaged(self, options: bytes) -> bytes:
        damaged = bytearray(options)
        for _ in range(self._choose.randrange(1, 4)):
            damaged[self._choose.randrange(len(damaged))] = self._choose.randrange(256)
        return bytes(damaged)

    def repair(self, sentence: str) -> bool:
        """Change what a refusal names, so that the kernel is reached behind the checks; returns whether it named anything."""
        choose, sentence = self._choose, sentence.partition(" Node number")[0]
        if found := re.search(r"it has \d+ (inputs|outputs)(?: and (?:takes|gives) |; \w+ has )(\d+)", sentence):
            wanted = int(found[2])
            if found[1] == "outputs":
                self.outputs = (self.outputs + [choose.choice(TYPES) for _ in range(wanted)])[:wanted]
            else:
                self.inputs = (self.inputs + [self._input(choose.choice(TYPES), choose.choice(SHAPES)) for _ in range(wanted)])[
                    :wanted
                ]
        elif found := re.search(r"(\w+), but tensor (\d+)", sentence) or re.search(
            r"tensor (\d+) .*this op takes (\w+)", sentence
        ):
            type, number = found[1], found[2]
            if type.isdigit():
                type, number = number, type
            if type in TensorType.__members__:
                self._retype(int(number), TensorType[type])
            elif named := re.search(r"has (\d+) dimensions, but tensor (\d+)", sentence):
                self._reshape(int(named[2]), int(named[1]))
            else:
                return False
        elif found := re.search(r"the attribute '(\w+)' of \w+ is (.*)", sentence):
            self.attributes[found[1]] = self._wanted(found[1], found[2])
            self.options = flex_options(self.op, self.attributes)
        elif found := re.search(r"tensor (\d+)", sentence):
            self._reshape(int(found[1]), choose.randrange(4))
        else:
            return False
        return True

    def _wanted(self, name: str, wrong: str) -> Any:
        """A value for an attribute that is missing or wrong, of the kind that the refusal asks for."""
        choose = self._choose
        asked = wrong.partition("must be ")[2]
        if types := [name for name in re.findall(r"[A-Z]+\d+|STRING|BOOL", asked) if name in TensorType.__members__]:
            return TensorType[choose.choice(types)]
        if asked.startswith("one of "):
            return choose.choice(re.split(r", ", asked[7:].rstrip(".")))
        for start, make in {
            "an integer": lambda: choose.choice(NUMBERS), "at ": lambda: choose.randrange(1, 5), "true": lambda: choose.random() < 0.5,
            "a list of integers": lambda: [choose.randrange(1, 4) for _ in range(choose.choice([1, 2, 4, 5]))],
            "a list of": lambda: [choose.randrange(1, 3)] * int((re.findall(r"\d+", asked) or ["2"])[0]),
            "a shape": lambda: choose.choice(SHAPES), "a finite": lambda: choose.choice([0.0, 0.5, 1.0, -3.0]),
            "a string": lambda: choose.choice(WORDS), "an element type": lambda: choose.choice(TYPES),
        }.items():  # fmt: skip
            if asked.startswith(start):
                return make()
        return self._value(name, choose.choice(TYPES))

    def _retype(self, number: int, type: TensorType) -> None:
        if number < len(self.inputs):
            self.inputs[number] = self._input(type, tuple(self.inputs[number].shape))
        elif number - len(self.inputs) < len(self.outputs):
            self.outputs[number - len(self.inputs)] = type

    def _reshape(self, number: int, rank: int) -> None:
        if number < len(self.inputs):
            fitting = [shape for shape in SHAPES if len(shape) == rank] or SHAPES
            self.inputs[number] = self._input(self.inputs[number].type, self._choose.choice(fitting))

    def change(self) -> None:
        """Change one thing of a node that is valid."""
        choose = self._choose
        if self.attributes and choose.random() < 0.4:
            name = choose.choice(sorted(self.attributes))
            self.attributes[name] = self._value(name, choose.choice(TYPES))
            self.options = flex_options(self.op, self.attributes)
        elif self.inputs:
            at = choose.randrange(len(self.inputs))
            spec = self.inputs[at]
            self.inputs[at] = self._input(spec.type, tuple(spec.shape) if choose.random() < 0.6 else choose.choice(SHAPES))

    def run(self) -> list[Array]:
        """The outputs, with the inputs as constants or fed, as chance wills."""
        constant = self._choose.random() < 0.5
        specs = [spec if constant else spec._replace(data=None) for spec in self.inputs]
        model = one_op_model(f"Flex{self.op}", specs, [Spec(type, []) for type in self.outputs], custom_options=self.options)
        interpreter = Interpreter(model_content=model, op_resolver=_RESOLVER, plugins=[], limits=LIMITS)
        feeds = [
            self._objects(spec) if spec.data is None else spec.data for spec in self.inputs if not constant or spec.data is None
        ]
        return invoke(interpreter, *feeds)

    def _objects(self, spec: Spec) -> Array:
        """Lists of tensors, and tables; now and then something else."""
        choose, objects = self._choose, np.empty(spec.shape, object)
        for at in range(objects.size):
            kind = self.attributes.get("element_dtype" if spec.type is TensorType.VARIANT else "Tin", None)
            type = kind if isinstance(kind, TensorType) and choose.random() < 0.8 else choose.choice(TYPES)
            if choose.random() < 0.05:
                objects.reshape(-1)[at] = choose.choice([None, 3, b"x", [1]])
            elif spec.type is TensorType.VARIANT:
                shape = choose.choice(SHAPES)
                elements = [self._input(type, shape).data if choose.random() < 0.8 else None for _ in range(choose.randrange(4))]
                known = choose.choice([None, shape, tuple(-1 for _ in shape)])
                objects.reshape(-1)[at] = TensorList.of(
                    [None if each is None else np.array(each) for each in elements], type, known
                )
            else:
                values = self.attributes.get("Tout")
                static, shape = choose.random() < 0.4, choose.choice([(), (), (2,)])
                value = values if isinstance(values, TensorType) else choose.choice(TYPES)
                objects.reshape(-1)[at] = Table(type, value, shape, is_static=static)
        return objects

    def __str__(self) -> str:
        inputs = ", ".join(
            f"{spec.type.name}{list(spec.shape)}={None if spec.data is None else spec.data.tolist()}" for spec in self.inputs
        )
        return f"{self.op}({inputs}) {self.attributes} -> {[type.name for type in self.outputs]}"


_RESOLVER = MutableOpResolver()
register_ops(_RESOLVER)


def _foreign(error: BaseException | None) -> BaseException | None:
    """The first exception in a chain that is none of oplet's: a kernel fell over something that it did not check."""
    while error is not None:
        if not isinstance(error, OpletError):
            return error
        error = error.__cause__
    return None


#: Repairs of a node that is refused, and changes of one that is answered.
REPAIRS, CHANGES = 12, 4


def _try(mutant: Mutant) -> tuple[str, str]:
    """Run a mutant: the sentence of its refusal, "" if it is answered, and what went wrong, "" if nothing did."""
    start, sentence, failure = time.process_time(), "", ""
    try:
        with np.errstate(all="ignore"):
            mutant.run()
    except OpletError as error:
        sentence = str(error)
        if foreign := _foreign(error):
            failure = f"{type(foreign).__name__}: {str(foreign)[:160]} in {str(mutant)[:700]}"
    if time.process_time() - start > LONGEST:
        failure = f"{time.process_time() - start:.0f} seconds for {str(mutant)[:700]}"
    return sentence, failure


def _check(wanted: int, seed: int) -> None:
    """Run `wanted` mutants of all operators together."""
    count = answered = 0
    reached, failures = set(), []
    while count < wanted:
        seed += 1
        for op in random.Random(seed).sample(NAMES, len(NAMES)):
            mutant, changes = Mutant(op, seed), CHANGES
            for _ in range(REPAIRS):
                sentence, failure = _try(mutant)
                count += 1
                if failure:
                    failures.append(failure)
                    break
                if not sentence:
                    answered += 1
                    reached.add(op)
                    changes -= 1
                    mutant.change()
                elif not mutant.repair(sentence):
                    break
                if not changes:
                    break
            if count >= wanted:
                break
    assert not failures, f"{len(failures)} of {count}:\n" + "\n".join(sorted(set(failures))[:60])
    assert answered > count // 20, (
        f"{answered} of {count} answered, of {len(reached)} operators: the mutants do not reach the kernels"
    )


def test_every_operator_is_in_one_family() -> None:
    assert len(NAMES) == len(set(NAMES)), sorted({name for name in NAMES if NAMES.count(name) > 1})


@pytest.mark.sweep
def test_mutants_are_answered_or_refused() -> None:
    _check(500, 0)


@pytest.mark.sweep
def test_many_mutants_are_answered_or_refused() -> None:
    """20,000 of them with OPLET_EVERY_CASE."""
    _check(20_000 // SWEEP, 1000)
