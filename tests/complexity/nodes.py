"""Nodes of oplet-flex-ops and oplet-text-ops whose inputs, values, texts and attributes are blown up: what `test_nodes.py` runs.

The nodes are those of the packages' own tests, of every operator that these compare with TensorFlow. Large inputs are made in the model, by
TILE, FILL and RANGE, so that the models are of a few kilobytes.

python -m tests.complexity.nodes [--only PATTERN] [--part 0/2] [--all]
"""

from __future__ import annotations

import argparse
import fnmatch
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from math import prod
from typing import Any, NamedTuple

import numpy as np
from plugins.flex_ops.tests.nodedefs import flex_options
from plugins.text_ops.tests.pieces import flexbuffer
from plugins.text_ops.tests.test_hostile import ON_ROWS
from tests.complexity.feeding import Feed
from tests.complexity.protocol import Answer, Request
from tests.complexity.watch import Watched, offence

from oplet import Interpreter, ModelBuilder, MutableOpResolver, TensorType
from oplet.errors import OpletError
from oplet.schema import options as o

__all__ = ["Blown", "Node", "blown", "check", "nodes", "operators", "registered"]

Array = np.ndarray[Any, Any]
#: Modules of tests, and their lists of functions that yield nodes.
_TESTS = (
    "arithmetic:GROUPS", "linalg:GROUPS", "linalg:FACTORED", "signal:GROUPS", "gradients:GROUPS", "gradients:NORMS", "random:CASES", "arrays:SWEEPS",
    "images:SWEEPS", "image_files:SWEEPS", "ragged:SWEEPS", "sequences:SWEEPS", "sparse:SWEEPS", "volumes:SWEEPS",
)  # fmt: skip
#: Functions of those modules that are in no list.
_FUNCTIONS = {
    "linalg:FACTORED": ["factored"],
    "gradients:NORMS": ["norm_cases"],
    "random:CASES": ["stateless_cases", "stateful_cases"],
}
#: Elements of the largest tensor, numbers that integers become, and bytes of texts.
_SIZES, _NUMBERS, _LENGTHS = (1 << 23, 1 << 20, 1 << 14), (-1, 1000, 1 << 20, (1 << 31) - 1), (1 << 10, 1 << 16, 1 << 20)
_PIECES = (b"ab c", b"12,3", b"\xc3\xa9\xcc\x81", b"a.b) ", b"\xff\x80")
#: Integers with more elements are data, not sizes; nodes of one operator that are blown up.
_FEW, _NODES = 8, 2
#: `max_seconds` of the first run: a model that overruns it by two seconds is run again with the documented two.
_QUICK = 0.4


class Node(NamedTuple):
    """A valid node.

    Attributes:
        op: the operator's name, with "Flex" in front for one of TensorFlow's.
        inputs: its inputs.
        attributes: its attributes, or custom options.
        outputs: the types of its outputs.
        lists: the inputs that are lists of tensors, of an input's rows.
    """

    op: str
    inputs: Sequence[Array]
    attributes: Mapping[str, Any]
    outputs: Sequence[TensorType]
    lists: frozenset[int] = frozenset()


class Blown(NamedTuple):
    """A node and what was made of it: the factors of its dimensions, other inputs, other attributes."""

    node: Node
    how: str
    factors: Mapping[tuple[int, int], int] = {}
    inputs: Mapping[int, Array] = {}
    attributes: Mapping[str, Any] = {}
    ramp: bool = False

    def model(self) -> bytes:
        """The model: constants of a few elements, nodes that make large inputs of them, and the node."""
        builder = ModelBuilder()
        graph = builder.add_subgraph()

        def constant(value: Array) -> int:
            found: int = graph.add_tensor("c", _type_of(value), value.shape, data=value)
            return found

        def made(op: str, inputs: list[int], type: Any, shape: Sequence[int], options: Any = None) -> int:
            found: int = graph.add_tensor("large", type, list(shape))
            graph.add_operator(op, inputs, [found], options)
            return found

        inputs = []
        for number, array in enumerate(self.node.inputs):
            value = self.inputs.get(number, array)
            times = [self.factors.get((number, axis), 1) for axis in range(value.ndim)]
            shape = [size * factor for size, factor in zip(value.shape, times)]
            if self.ramp and value.dtype.kind == "i" and value.size and prod(times) > 1:
                count = np.array(prod(shape), np.int64)
                ends = [constant(np.array(0, np.int64)), constant(count), constant(np.array(1, np.int64))]
                flat = made("RANGE", ends, "int64", [int(count)], o.RangeOptions())
                flat = made("RESHAPE", [flat, constant(np.array(shape, np.int32))], "int64", shape, o.ReshapeOptions())
                cast = o.CastOptions(in_data_type=TensorType.INT64, out_data_type=_type_of(value))
                inputs.append(made("CAST", [flat], _type_of(value), shape, cast))
            elif prod(times) > 1:
                inputs.append(made("TILE", [constant(value), constant(np.array(times, np.int32))], _type_of(value), shape))
            else:
                inputs.append(constant(value))
        for number in self.node.lists:
            rows = {"element_dtype": _type_of(self.node.inputs[number]), "shape_type": TensorType.INT32}
            made_list = graph.add_tensor("list", TensorType.VARIANT, [])
            given = [inputs[number], constant(np.array(-1, np.int32))]
            graph.add_operator(
                "FlexTensorListFromTensor",
                given,
                [made_list],
                custom=True,
                custom_options=flex_options("TensorListFromTensor", rows),
            )
            inputs[number] = made_list
        attributes = {**self.node.attributes, **self.attributes}
        flex = self.node.op.startswith("Flex")
        options = flex_options(self.node.op[4:], attributes) if flex else flexbuffer(attributes)
        outputs = [graph.add_tensor(f"y{number}", type, [1]) for number, type in enumerate(self.node.outputs)]
        graph.add_operator(self.node.op, inputs, outputs, custom=True, custom_options=options)
        graph.set_inputs()
        graph.set_outputs(*outputs)
        return builder.to_bytes()


def _type_of(array: Array) -> TensorType:
    return TensorType.STRING if array.dtype == object else TensorType[array.dtype.name.upper()]


def registered() -> set[str]:
    """The operators of both packages."""
    found = set()

    class Names(MutableOpResolver):
        def add_custom(self, name: str, registration: object, *rest: object, **more: object) -> None:  # type: ignore[override]
            found.add(name)

    for package in ("oplet_flex_ops", "oplet_text_ops"):
        import_module(package).register_ops(Names())
    return found


def nodes(only: str = "*") -> dict[str, list[Node]]:
    """Valid nodes of the operators whose names match, by name: of each the one with most elements, and one of other types."""
    every = _every()
    wanted = [op for op in sorted(every) if any(fnmatch.fnmatch(op, pattern) for pattern in only.split(","))]
    return {op: _chosen(every[op]) for op in wanted}


def operators() -> list[str]:
    """The operators of which there are nodes, sorted."""
    return sorted(_every())


@cache
def _every() -> dict[str, list[Node]]:
    """All nodes by operator, those included that are not valid yet."""
    every: dict[str, list[Node]] = {}
    for place in _TESTS:
        name, _, group = place.partition(":")
        module = import_module(f"plugins.flex_ops.tests.test_{name}")
        functions = [getattr(module, each) for each in _FUNCTIONS.get(place, ())] or getattr(module, group)
        for function in functions:
            for case in function():
                inputs = [np.asarray(array) for array in case.inputs]
                node = Node(f"Flex{case.op}", inputs, dict(case.attributes), [TensorType.FLOAT32] * getattr(case, "outputs", 1))
                every.setdefault(node.op, []).append(node)
    for node in (*_strings(), *_lists(), *_rows()):
        every.setdefault(node.op, []).append(node)
    return every


def _texts(*items: bytes) -> Array:
    found = np.empty(len(items), object)
    found[:] = items
    return found


def _strings() -> Iterator[Node]:
    """Nodes on strings that make numbers; those that make strings are in `tests/hostile/texts_child.py`."""
    words, types = _texts(b"ab c", b"12"), TensorType
    for op, attributes in {
        "StringToHashBucket": {"num_buckets": 7}, "StringToHashBucketFast": {"num_buckets": 7},
        "StringToHashBucketStrong": {"num_buckets": 7, "key": [3, 5]}, "StringLength": {"unit": "UTF8_CHAR"},
    }.items():  # fmt: skip
        yield Node(f"Flex{op}", [words], attributes, [types.INT64])
    yield Node("FlexStringToNumber", [_texts(b"12", b"3")], {"out_type": types.FLOAT32}, [types.FLOAT32])
    for pattern in (
        b"(a|b)*c",
        b"(.*)(.*)(.*)(.*)(.*)x",
        b"(x+x+)+y",
        b"((a{1,30}){1,30}){1,30}",
        b"(?i)\\w+\\s$",
        b"[^x]*?b\\b",
        b"\\pN+",
    ):
        yield Node("FlexStaticRegexFullMatch", [words], {"pattern": pattern}, [types.BOOL])
        yield Node("FlexStaticRegexReplace", [words], {"pattern": pattern, "rewrite": b"-"}, [types.STRING])
    for type in (types.UINT8, types.FLOAT32):
        yield Node("FlexDecodeRaw", [_texts(b"abcd", b"1234")], {"out_type": type, "little_endian": True}, [type])
    fixed = np.array(8, np.int32)
    yield Node("FlexDecodePaddedRaw", [_texts(b"abcd"), fixed], {"out_type": types.INT16, "little_endian": True}, [types.INT16])
    decoded = {"input_encoding": "UTF-8", "errors": "replace", "replacement_char": 65533, "Tsplits": types.INT64}
    yield Node("FlexUnicodeDecode", [words], decoded, [types.INT64, types.INT32])
    yield Node("FlexUnicodeDecodeWithOffsets", [words], decoded, [types.INT64, types.INT32, types.INT64])


def _lists() -> Iterator[Node]:
    """Nodes on lists of tensors."""
    rows, one, any_shape = np.arange(8, dtype=np.float32).reshape(4, 2), frozenset({0}), np.array(-1, np.int32)
    f32, variant, i32, i64 = TensorType.FLOAT32, TensorType.VARIANT, np.int32, TensorType.INT64
    of = {"element_dtype": f32}
    number, places, lengths = np.array(2, i32), np.array([1, 0, 3, 2], i32), np.array([1, 3], np.int64)
    yield Node("FlexTensorListStack", [rows, any_shape], {**of, "num_elements": -1}, [f32], one)
    yield Node("FlexTensorListGather", [rows, places, any_shape], of, [f32], one)
    yield Node("FlexTensorListConcat", [rows], of, [f32, i64], one)
    yield Node("FlexTensorListConcatV2", [rows, any_shape, lengths], of, [f32, i64], one)
    yield Node("FlexTensorListGetItem", [rows, number, any_shape], of, [f32], one)
    yield Node("FlexTensorListSetItem", [rows, number, rows[0]], {**of, "resize_if_index_out_of_bounds": True}, [variant], one)
    yield Node("FlexTensorListPushBack", [rows, rows[0]], of, [variant], one)
    yield Node("FlexTensorListPopBack", [rows, any_shape], of, [variant, f32], one)
    yield Node("FlexTensorListResize", [rows, number], {}, [variant], one)
    yield Node("FlexTensorListConcatLists", [rows, rows], of, [variant], frozenset({0, 1}))
    yield Node("FlexTensorListScatter", [rows, places, any_shape], {**of, "shape_type": TensorType.INT32}, [variant])
    yield Node("FlexTensorListScatterIntoExistingList", [rows, rows, places], of, [variant], one)
    yield Node("FlexTensorListSplit", [rows, any_shape, lengths], {**of, "shape_type": TensorType.INT32}, [variant])
    yield Node("FlexTensorListReserve", [any_shape, number], {**of, "shape_type": TensorType.INT32}, [variant])


def _rows() -> Iterator[Node]:
    """Nodes of oplet-text-ops on rows."""
    splits = np.array([0, 1, 3], np.int64)
    given = {
        "object": _texts(b"ab c", b"Dr. X. Y!", b"z"), "int32": np.array([5, 70, 9], np.int32), "int64": splits, "bool": np.array([True]),
    }  # fmt: skip
    for op, (options, inputs, outputs) in ON_ROWS.items():
        types = [TensorType.STRING if type == "object" else TensorType[type.upper()] for type in outputs]
        yield Node(op, [given[type] for type in inputs], options, types)


def _settled(node: Node) -> Node | None:
    """The node with as many outputs, of the types, as its kernel says that it has; None if it is refused for something else."""
    for _ in range(12):
        try:
            interpreter = Interpreter(model_content=Blown(node, "").model(), plugins=["builtin_ops", "flex_ops", "text_ops"])
            interpreter.allocate_tensors()
            interpreter.invoke()
            return node
        except OpletError as error:
            made = _corrected(list(node.outputs), str(error))
            if made is None:
                return None
            node = node._replace(outputs=made)
    return None


def _corrected(outputs: list[TensorType], message: str) -> list[TensorType] | None:
    if number := re.search(r"it has \d+ outputs(?: and gives |; \w+ has )(\d+)", message):
        return [TensorType.FLOAT32] * int(number[1])
    if (place := re.search(r"'y(\d+)' \((\w+)", message)) and (
        wanted := re.search(r"this op takes (\w+)(?: or \w+)* here|is (\w+), but tensor \d+ 'y|must be of type (\w+)", message)
    ):
        type = TensorType[wanted[1] or wanted[2] or wanted[3]]
        outputs[int(place[1])] = type
        return outputs if type.name != place[2] else None
    return None


def _chosen(found: list[Node]) -> list[Node]:
    chosen: list[Node] = []
    kinds = set()
    for node in sorted(found, key=lambda node: -min(sum(array.size for array in node.inputs), 1 << 12)):
        kind = (*(array.dtype.kind for array in node.inputs), *sorted(node.attributes))
        if kind not in kinds and (settled := _settled(node)) is not None:
            chosen.append(settled)
            kinds.add(kind)
            if len(chosen) == _NODES:
                break
    return chosen


def blown(node: Node, run: Callable[[Blown], Answer]) -> None:
    """Run what can be made of a node."""
    dims = {(i, axis): size for i, array in enumerate(node.inputs) for axis, size in enumerate(array.shape) if size}
    groups = [tuple(place for place, size in dims.items() if size == each) for each in sorted(set(dims.values()))]
    groups += [(place,) for place in list(dims)[:4] if (place,) not in groups]
    if any(array.ndim > 1 for array in node.inputs):
        groups.append(tuple(place for place in dims))
    integers = any(array.dtype.kind == "i" for array in node.inputs)
    for group in groups:
        accepted = 0
        for size in _SIZES:
            factors = _factors(node, group, size)
            if factors is None:
                continue
            answers = [run(Blown(node, f"{group} {size}", factors))]
            if integers:
                answers.append(run(Blown(node, f"{group} {size} ramp", factors, ramp=True)))
            accepted += any(answer.accepted for answer in answers)
            if accepted > 1:
                break
    for number, array in enumerate(node.inputs):
        if array.dtype.kind in "iu" and 0 < array.size <= _FEW:
            for value in _NUMBERS:
                bounds = np.iinfo(array.dtype)
                number_of_type = min(max(value, int(bounds.min)), int(bounds.max))
                run(Blown(node, f"input {number}: {value}", inputs={number: np.full_like(array, number_of_type)}))
                if array.size > 1:
                    last = array.copy()
                    last.reshape(-1)[-1] = number_of_type
                    run(Blown(node, f"input {number}: last {value}", inputs={number: last}))
        if array.dtype == object and array.size:
            for length in _LENGTHS:
                for piece in _PIECES if length == _LENGTHS[-1] else _PIECES[:1]:
                    text = np.empty(array.shape, object)
                    text[...] = piece * (length // len(piece))
                    run(Blown(node, f"input {number}: {piece!r} {length}", inputs={number: text}))
        if array.dtype.kind in "fc" and array.size:
            for value in (1e30, np.nan):
                run(Blown(node, f"input {number}: {value}", inputs={number: np.full_like(array, value)}))
    for name, value in node.attributes.items():
        if type(value) is int:
            for other in _NUMBERS:
                run(Blown(node, f"{name}: {other}", attributes={name: other}))


def _factors(node: Node, group: Iterable[tuple[int, int]], size: int) -> dict[tuple[int, int], int] | None:
    """The factor of these dimensions with which the largest input has about so many elements."""
    group = tuple(group)
    least = 1 << 62
    for number, array in enumerate(node.inputs):
        axes = sum(place[0] == number for place in group)
        if axes and array.size:
            least = min(least, int((size / array.size) ** (1 / axes)))
    return dict.fromkeys(group, least) if 1 < least < 1 << 31 else None


def check(chosen: Iterable[Node], say: Callable[[str], None] = lambda line: None) -> tuple[list[str], int]:
    """Run all that is made of the nodes; what broke a promise, and how many models were run."""
    found: list[str] = []
    runs = 0
    with Watched("custom") as child:

        def run(case: Blown) -> Answer:
            nonlocal runs
            runs += 1
            data = case.model()
            answer = child.run(Request(data, Feed(), _QUICK))
            what = offence(answer, _QUICK)
            if what in ("time", "hung"):
                slow = child.run(Request(data, Feed(), 2.0))
                what = offence(slow)
                answer = slow if what else answer
            if (
                what == "memory"
            ):  # again: what the allocator keeps of the models before, and BLAS of its first product, is no node's
                answer = child.run(Request(data, Feed(), _QUICK))
                what = offence(answer, _QUICK)
            if what == "warned":
                what = ""
            if what:
                seconds = {stage: round(value, 1) for stage, value in answer.seconds.items() if value > 0.5}
                shapes = [f"{array.dtype}{list(array.shape)}" for array in case.node.inputs]
                line = f"{what}: {case.node.op} {shapes} {case.how} {seconds} +{answer.grown >> 20} MB {answer.error} at {answer.place} {answer.message[:100]}"
                found.append(line)
                say(line)
            return answer

        for node in chosen:
            blown(node, run)
    return found, runs


def main() -> int:
    """Run the nodes of all operators, or of some."""
    parser = argparse.ArgumentParser(prog="python -m tests.complexity.nodes", description=__doc__)
    parser.add_argument("--only", default="*", help="operators whose names match")
    parser.add_argument("--part", default="0/1", help="every nth operator: 0/2 and 1/2 are the halves")
    arguments = parser.parse_args()
    part, parts = map(int, arguments.part.split("/"))
    every = nodes(arguments.only)
    offences = total = 0
    for op in list(every)[part::parts]:
        found, runs = check(every[op], lambda line: print(line, flush=True))
        offences, total = offences + len(found), total + runs
        print(f"{op}: {runs} models, {len(found)} offences", flush=True)
    print(f"{total} models, {offences} offences")
    return bool(offences)


if __name__ == "__main__":
    sys.exit(main())
