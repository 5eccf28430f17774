"""No kernel of oplet-flex-ops or oplet-text-ops loops over data in Python without a look at the clock.

A loop is one over data where what it goes over comes from a tensor's values or size. It looks at the clock where its body, or what it goes
over, has `paced`, `checkpoint`, a `StringMeter` or something of the package that has one. Loops that are short by what they go over are
known by its name (axes, operands, levels); others that need none are listed, with a reason for each group.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pytest
from scripts.syntax import parsed
from tests.places import ROOT

_PACKAGES = ("flex_ops", "text_ops")
#: What looks at the clock, and methods of a StringMeter.
_CLOCK = {"checkpoint", "paced", "make_strings", "StringMeter", "listed", "foresee"}
_METER = {"read", "add", "join", "join_windows", "hold"}
#: Attributes and annotations by which something is data.
_DATA = {"tolist", "flat", "data", "elements", "ravel", "reshape", "size", "nonzero", "splitlines", "finditer", "findall"}
_TYPES = ("Array", "bytes", "list[")
#: What is short: it has an item for each dimension, operand, output, level or attribute.
_SHORT = re.compile(
    r"(reversed\()?(enumerate\()?(zip\()?[^()]*\b(axes|shape|sizes|pads|ndim|rank|operands|sources|variables|arguments|node\.inputs|"
    r"node\.outputs|others|levels|views|halvings|wanted|blocks|pairs|orders|outputs|held|flags|names|"
    r"steps|given|dropped)\b(?!\[[0-9]+\])[^()]*\)*"
)
#: Modules that read a node's attributes, whose number a file bounds, or build registrations.
_ABOUT_NODES = {"signature.py", "nodedef.py", "attributes.py", "kernel.py", "operator.py"}
#: Functions whose loops need no look at the clock.
_EXCUSED = {
    # What they go over has an item for each dimension, level, band, tap, group or piece of a node, or there is a pass of numpy in each round.
    "oplet_flex_ops.numerics.dense:_by_parts", "oplet_flex_ops.numerics.dense:multiply",
    "oplet_flex_ops.numerics.gamma:bernoulli", "oplet_flex_ops.numerics.gamma:zeta", "oplet_flex_ops.numerics.planes:_grouped",
    "oplet_flex_ops.numerics.planes:input_gradient", "oplet_flex_ops.numerics.planes:taps",
    "oplet_flex_ops.ops.arithmetic.normalization:_registration", "oplet_flex_ops.ops.arrays.blocks:_to_space_views",
    "oplet_flex_ops.ops.arrays.joining:UNPACK", "oplet_flex_ops.ops.arrays.layout:_backwards",
    "oplet_flex_ops.ops.arrays.layout:TILE", "oplet_flex_ops.ops.arrays.passing:ASSERT",
    "oplet_flex_ops.ops.arrays.passing:PRINT", "oplet_flex_ops.ops.arrays.passing:_shown",
    "oplet_flex_ops.ops.arrays.shapes:BROADCASTARGS", "oplet_flex_ops.ops.arrays.slicing:_strided",
    "oplet_flex_ops.ops.gradients.layers:BIASADDGRAD", "oplet_flex_ops.ops.gradients.normalization:_batch_norm",
    "oplet_flex_ops.ops.images.colours:ADJUSTHUE", "oplet_flex_ops.ops.images.colours:_rgb",
    "oplet_flex_ops.ops.images.suppression:_soften", "oplet_flex_ops.ops.linalg.diagonals:MATRIXBANDPART",
    "oplet_flex_ops.ops.linalg.solving:BANDEDTRIANGULARSOLVE",
    "oplet_flex_ops.ops.linalg.solving:TRIDIAGONALSOLVE", "oplet_flex_ops.ops.ragged.dense:_rows",
    "oplet_flex_ops.ops.ragged.dense:RAGGEDTENSORTOTENSOR", "oplet_flex_ops.ops.ragged.variants:_levels",
    "oplet_flex_ops.ops.sequences.beam_search:best", "oplet_flex_ops.ops.sequences.cells:GRUBLOCKCELL",
    "oplet_flex_ops.ops.signal.fourier:_of_real", "oplet_flex_ops.ops.sparse.arithmetic:_both",
    "oplet_flex_ops.ops.sparse.arithmetic:SPARSEMATMUL", "oplet_flex_ops.ops.sparse.reductions:_reduce",
    "oplet_flex_ops.ops.strings.joins:_reduction",
    # One pass of a simple expression over strings, bytes or words that were counted before, or that the caller has cut into small parts.
    "oplet_flex_ops.lists.persistent:_held", "oplet_flex_ops.ops.strings.decode_raw:bind",
    "oplet_flex_ops.ops.strings.substr:_starts",
    "oplet_flex_ops.tables:find", "oplet_flex_ops.texts.fingerprints:_words", "oplet_flex_ops.texts.regular:replace_first",
    "oplet_text_ops.nodes:parts", "oplet_text_ops.classic.processor:_add", "oplet_text_ops.classic.processor:cut",
    "oplet_text_ops.classic.model:__init__", "oplet_text_ops.classic.processor:text",
    "oplet_text_ops.classic.unigram:cut", "oplet_text_ops.models.bert_normalizer:_replaced",
    "oplet_text_ops.models.bert_normalizer:normalize", "oplet_text_ops.models.linear_cut:pieces",
    "oplet_text_ops.models.longest_match:_put_together", "oplet_text_ops.models.longest_match:cut_all",
    "oplet_text_ops.models.pieces:_add", "oplet_text_ops.models.pieces:_entries", "oplet_text_ops.models.words:_parted",
    "oplet_text_ops.models.words:_places", "oplet_text_ops.models.words:words", "oplet_text_ops.ops.byte_split:bind_parts",
    "oplet_text_ops.ops.byte_split:bind_bytes", "oplet_text_ops.ops.ragged:run_gather",
    "oplet_text_ops.ops.ragged:run_dense", "oplet_text_ops.ops.regex_split_with_offsets:bind",
    "oplet_text_ops.ops.round_robin:run_trim", "oplet_text_ops.ops.sentencepiece:run_detokenize",
    "oplet_text_ops.ops.strided_slice:_indices", "oplet_text_ops.ops.string_length:bind",
    "oplet_text_ops.ops.utf8_binarize:invoke", "oplet_text_ops.sentencepiece.columns:_edges",
    "oplet_text_ops.sentencepiece.columns:_paths", "oplet_text_ops.sentencepiece.columns:cut_words",
    "oplet_text_ops.sentencepiece.decoder:__init__", "oplet_text_ops.sentencepiece.decoder:decode",
    "oplet_text_ops.sentencepiece.encoder:_by_words", "oplet_text_ops.sentencepiece.encoder:_whole",
    "oplet_text_ops.sentencepiece.lattice:_cut", "oplet_text_ops.sentencepiece.normalizer:_all_replaced",
    "oplet_text_ops.sentencepiece.normalizer:_replaced", "oplet_text_ops.sentencepiece.normalizer:words",
    "oplet_text_ops.sentencepiece.trie:levels", "oplet_text_ops.sentencepiece.trie:parts_at_spaces",
    "oplet_text_ops.sentencepiece.words:_cuts", "oplet_text_ops.sentencepiece.words:_learn",
    "oplet_text_ops.sentencepiece.words:numbers", "oplet_text_ops.tables.double_array:_any_reached",
    "oplet_text_ops.tables.double_array:has_before", "oplet_text_ops.tables.double_array:walk",
    "oplet_text_ops.tables.flat_table:strings", "oplet_text_ops.texts.characters:_marks",
    "oplet_text_ops.texts.characters:newer", "oplet_text_ops.texts.code_points:kinds",
    "oplet_text_ops.texts.normalization:__missing__", "oplet_text_ops.texts.utf8:__init__", "oplet_text_ops.texts.utf8:decode",
}  # fmt: skip


class Loop(NamedTuple):
    """A loop over data: where it is, and what it goes over."""

    place: str
    line: int
    over: str


def _called(node: ast.AST) -> set[str]:
    calls = (each.func for each in ast.walk(node) if isinstance(each, ast.Call))
    return {call.id if isinstance(call, ast.Name) else call.attr for call in calls if isinstance(call, (ast.Name, ast.Attribute))}


def _meters(node: ast.AST) -> bool:
    return any(
        isinstance(each, ast.Attribute) and each.attr in _METER and "meter" in ast.unparse(each.value) for each in ast.walk(node)
    )


def looking(trees: Iterable[ast.AST]) -> set[str]:
    """The names of functions that look at the clock, themselves or by others."""
    functions = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    known, before = _CLOCK | {node.name for node in functions if _meters(node)}, 0
    called = [(node.name, _called(node)) for node in functions]
    while len(known) != before:
        before = len(known)
        known |= {name for name, others in called if others & known}
    return known


def _is_data(node: ast.AST, names: set[str]) -> bool:
    return any(
        (isinstance(each, ast.Attribute) and each.attr in _DATA) or (isinstance(each, ast.Name) and each.id in names)
        for each in ast.walk(node)
    )


def _data_names(function: ast.FunctionDef) -> set[str]:
    """The names in a function that stand for data."""
    given = [*function.args.args, *function.args.kwonlyargs]
    names = set()
    for argument in given:
        annotation = "" if argument.annotation is None else ast.unparse(argument.annotation)
        if any(type in annotation for type in _TYPES) and "Callable" not in annotation:
            names.add(argument.arg)
    for _ in range(3):
        for node in ast.walk(function):
            value = node.value if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr)) else None
            if value is not None and _is_data(value, names):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]  # type: ignore[attr-defined]
                names |= {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}
    return names


def _loops(function: ast.FunctionDef) -> Iterator[tuple[ast.AST, ast.expr | None]]:
    """Each loop of a function, and what it goes over; None for `while`."""
    for node in ast.walk(function):
        if isinstance(node, ast.For):
            yield node, node.iter
        elif isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)):
            yield node, node.generators[0].iter
        elif isinstance(node, ast.While):
            yield node, None
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "map" and len(node.args) > 1:
            yield node, node.args[1]


def _is_long(over: ast.expr, names: set[str]) -> bool:
    if isinstance(over, (ast.Tuple, ast.List)) or _SHORT.fullmatch(ast.unparse(over)):
        return False
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Name) and over.func.id == "range":
        return not all(isinstance(each, (ast.Constant, ast.UnaryOp)) for each in over.args)
    return _is_data(over, names)


def unpaced(trees: dict[str, ast.AST]) -> list[Loop]:
    """The loops over data, in modules by name, that do not look at the clock."""
    known, found = looking(trees.values()), []
    for module, tree in trees.items():
        inner = {
            each for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) for each in ast.walk(node)
            if each is not node and isinstance(each, ast.FunctionDef)
        }  # fmt: skip
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef) or function in inner:
                continue
            names = _data_names(function)
            for loop, over in _loops(function):
                if (over is None or _is_long(over, names)) and not _called(loop) & known and not _meters(loop):
                    shown = "while" if over is None else ast.unparse(over)[:80]
                    found.append(Loop(f"{module}:{function.name}", loop.lineno, shown))  # type: ignore[attr-defined]
    return found


@functools.cache
def _found(package: str) -> list[Loop]:
    """The loops over data of a package that do not look at the clock."""
    return unpaced(_trees(package))


def _trees(package: str) -> dict[str, ast.AST]:
    root = ROOT / "plugins" / package / "src"
    return {
        ".".join(path.relative_to(root).with_suffix("").parts): parsed(path)
        for path in sorted(root.rglob("*.py")) if path.name not in _ABOUT_NODES
    }  # fmt: skip


@pytest.mark.parametrize("package", _PACKAGES)
def test_every_loop_over_data_looks_at_the_clock(package: str) -> None:
    found = [loop for loop in _found(package) if loop.place not in _EXCUSED]
    assert not found, "\n".join(f"{loop.place}, line {loop.line}: over {loop.over}" for loop in found)


def test_no_function_is_excused_that_has_no_such_loop() -> None:
    found = {loop.place for package in _PACKAGES for loop in _found(package)}
    assert found >= _EXCUSED, sorted(_EXCUSED - found)


@pytest.mark.parametrize(
    "body",
    [
        "for x in array.tolist(): work(x)", "return [work(x) for x in array.ravel()]", "for i in range(len(array)): work(i)",
        "for i in range(array.shape[0]): work(i)", "while at < n: at = work(at)", "rows = array.tolist()\n    for x in rows: work(x)",
        "return list(map(work, array.tolist()))", "return sum(work(x) for x in zip(array, array))",
    ],
)  # fmt: skip
def test_a_loop_over_data_is_found(body: str) -> None:
    assert unpaced({"m": ast.parse(f"def kernel(array: Array, n: int):\n    {body}")})


@pytest.mark.parametrize(
    "body",
    [
        "for x in paced(array.tolist()): work(x)", "for x in array.tolist():\n        checkpoint()", "for axis in axes: work(axis)",
        "for i in range(3): work(i)", "for x in array.tolist(): helper(x)", "for x in array.tolist(): meter.read(len(x))",
    ],
)  # fmt: skip
def test_what_looks_at_the_clock_or_is_short_is_none(body: str) -> None:
    helper = "def helper(x):\n    checkpoint()\n"
    assert not unpaced({"m": ast.parse(f"{helper}def kernel(array: Array, axes: Shape, meter):\n    {body}")})
