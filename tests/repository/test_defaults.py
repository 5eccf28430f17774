"""`x or default` takes the default also for 0, "" and what is empty, so it stands where these mean the same as nothing.

What was written into the `[]` of `x or []` is lost where x is an empty list, and `x or 5` makes 5 of a 0 that somebody gave.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripts.syntax import dotted, nodes, parsed
from tests.places import ROOT

FOLDERS = (ROOT / "core" / "src", *(ROOT / "plugins").glob("*/src"), *(ROOT / name for name in ("benchmarks", "fuzz", "scripts")))
FILES = [path for folder in FOLDERS for path in sorted(folder.rglob("*.py"))]

#: What reads a list or dict that it is given, and keeps nothing of it.
READERS = {
    "all",
    "any",
    "dict",
    "enumerate",
    "frozenset",
    "len",
    "list",
    "map",
    "max",
    "min",
    "set",
    "sorted",
    "sum",
    "tuple",
    "zip",
}
#: How the annotations of numbers begin, those of enumerations with a member 0 included.
NUMBERS = ("int", "float", "bytes", "Annotated[int", "Annotated[float", "TensorType", "BuiltinOperator", "Activation", "Padding")
#: Where 0 or b"" means the same as nothing, by the file's end.
NOTHING = {
    "kernels/options.py": {"count or 'one or more'"},  # as its docstring says
    "threads/splitting.py": {"how.advance or (how.rows if how.per_row else how.columns)"},  # one piece, which all blocks read
    "tuning/differences.py": {"scale or 1.0"},  # of zeros, by which nothing can be divided
    "oplet_builtin_ops/ops/batch_matmul.py": {"columns or 1"},  # rows of nothing, which numpy cannot count
    "oplet_flex_ops/image_files.py": {"channels or '1 or 3'"},  # 0: those of the file
    "oplet_native_ops/ops/node.py": {"options or None"},  # bytes that nobody can tell from none in C
    "oplet_openvino_delegate/compiling.py": {"_multiplications(node) or _values(node)"},  # one of the two is 0
    "machine_code/image.py": {"name or 'a symbol without name'"},  # as ELF files say
    "classic/model.py": {"text(self._fields.get(number, b'')) or default"},  # as SentencePiece does
}


def choosing() -> dict[Path, ast.Module]:
    """The files that have what is looked for, and their trees."""
    return {path: parsed(path) for path in FILES if re.search(r"\bor\b", path.read_text("utf-8"))}


def parents(tree: ast.AST) -> dict[ast.AST, ast.AST]:
    return {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}


def choices(tree: ast.AST) -> Iterator[ast.BoolOp]:
    """What is made by `or`, conditions left out."""
    made = [node for node in nodes(tree, ast.BoolOp) if isinstance(node.op, ast.Or)]
    above = parents(tree) if made else {}
    for node in made:
        user: ast.AST = node
        while isinstance(above[user], (ast.BoolOp, ast.UnaryOp)):
            user = above[user]
        if getattr(above[user], "test", None) is not user and user not in getattr(above[user], "ifs", ()):
            yield node


def is_fresh(node: ast.AST) -> bool:
    """Whether it is an empty list or dict, into which somebody may write."""
    return isinstance(node, (ast.List, ast.Dict)) and not (node.elts if isinstance(node, ast.List) else node.keys)


def is_read(node: ast.BoolOp, user: ast.AST) -> bool:
    """Whether who gets it only reads it, there and at once, or it is stored where None or an empty one was before."""
    if isinstance(user, ast.Call):
        return isinstance(user.func, ast.Name) and user.func.id in READERS
    if isinstance(user, ast.Assign):
        targets = [ast.unparse(target) for target in user.targets]
        return isinstance(user.targets[0], (ast.List, ast.Tuple)) or ast.unparse(node.values[0]) in targets
    if isinstance(user, ast.Dict):
        return None in user.keys  # **
    return isinstance(user, (ast.For, ast.comprehension, ast.Starred, ast.YieldFrom, ast.Subscript, ast.Attribute))


def lost(tree: ast.AST) -> Iterator[str]:
    """Empty lists and dicts that `or` makes and gives away, and what is written into them would be lost."""
    made = [node for node in choices(tree) if is_fresh(node.values[-1])]
    above = parents(tree) if made else {}
    for node in made:
        if is_read(node, above[node]):
            continue
        user = above[node]
        if isinstance(user, ast.Assign) and len(user.targets) == 1 and isinstance(user.targets[0], ast.Name):
            room = user
            while not isinstance(room, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)):
                room = above[room]  # type: ignore[assignment]
            name = user.targets[0].id
            uses = (
                each for each in ast.walk(room) if isinstance(each, ast.Name) and each.id == name and each is not user.targets[0]
            )
            if all(is_only_read(each, above) for each in uses):
                continue
        yield f"line {node.lineno}: {ast.unparse(node)}"


def is_only_read(name: ast.Name, above: dict[ast.AST, ast.AST]) -> bool:
    user = above[name]
    if isinstance(user, ast.Subscript):
        return isinstance(user.ctx, ast.Load)
    if isinstance(user, ast.Attribute):
        return user.attr in ("get", "items", "keys", "values", "index", "count")
    if isinstance(user, ast.Call):
        return isinstance(user.func, ast.Name) and user.func.id in READERS
    return isinstance(user, (ast.For, ast.comprehension, ast.Starred, ast.Compare, ast.If, ast.IfExp, ast.BoolOp, ast.UnaryOp))


def is_number(annotation: ast.expr) -> bool:
    if isinstance(annotation, ast.BinOp):
        return is_number(annotation.left) or is_number(annotation.right)
    return (dotted(annotation) or ast.unparse(annotation)).strip("'").startswith(NUMBERS)


def declared(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """Names that are annotated, and whether as numbers."""
    for node in nodes(tree, ast.AnnAssign):
        if isinstance(node.target, (ast.Name, ast.Attribute)):
            yield node.target.id if isinstance(node.target, ast.Name) else node.target.attr, is_number(node.annotation)
    for function in nodes(tree, ast.FunctionDef, ast.AsyncFunctionDef):
        for each in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs):
            if each.annotation is not None:
                yield each.arg, is_number(each.annotation)
        if function.returns is not None:
            yield function.name, is_number(function.returns)


def by_name(*trees: ast.AST) -> dict[str, set[bool]]:
    found = defaultdict(set)
    for tree in trees:
        for name, number in declared(tree):
            found[name].add(number)
    return found


def replaced(tree: ast.AST, attributes: dict[str, set[bool]]) -> Iterator[str]:
    """Numbers for which `or` takes something else where they are 0."""
    made = list(choices(tree))
    local = by_name(tree) if made else {}
    for node in made:
        default = node.values[-1]
        if isinstance(default, ast.Constant) and default.value is not None and not default.value:
            continue  # 0 for 0
        if isinstance(default, (ast.BoolOp, ast.Compare)) or (
            isinstance(default, ast.UnaryOp) and isinstance(default.op, ast.Not)
        ):
            continue  # a condition
        for value in node.values[:-1]:
            for part in (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,):
                called = part.func if isinstance(part, ast.Call) else part
                if isinstance(called, ast.Name):
                    kinds = local.get(called.id)
                else:
                    kinds = attributes.get(called.attr) if isinstance(called, ast.Attribute) else None
                if kinds == {True}:
                    yield ast.unparse(node)


def test_nothing_is_written_into_a_list_that_or_makes() -> None:
    found = {str(path.relative_to(ROOT)): list(lost(tree)) for path, tree in choosing().items()}
    assert {path: spots for path, spots in found.items() if spots} == {}, "write `x or ()`, or `[] if x is None else x`"


def test_zero_is_a_number_like_others() -> None:
    attributes = by_name(*map(parsed, FILES))
    known = {end: set(spots) for end, spots in NOTHING.items()}
    for path, tree in choosing().items():
        found = set(replaced(tree, attributes))
        for end in known:
            if path.as_posix().endswith(end):
                assert known[end] <= found, f"{path} has none of {known[end]} any more"
                found -= known[end]
        assert not found, f"{path}: write `default if x is None else x`, or say in NOTHING why 0 is as good as nothing"


@pytest.mark.parametrize(
    "code",
    [
        "change(copied._items or [])",
        "self.kept = given or {}",
        "return given or []",
        "items = given or []\nitems.append(1)",
        "items = given or []\nitems[0] = 1",
        "items = given or []\nchange(items)",
        "f(given=given or {})",
    ],
)
def test_a_list_that_gets_lost_is_found(code: str) -> None:
    assert list(lost(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    [
        "for x in given or []: pass",
        "len(given or [])",
        "(given or {}).get(1)",
        "root.entries = root.entries or []",
        "items = given or []\nprint(items[0])",
        "items = given or [1]\nitems.append(2)",
        "if a or []: pass",
    ],
)
def test_a_list_that_is_only_read_is_none(code: str) -> None:
    assert not list(lost(ast.parse(code)))


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("n: int | None\nn or 5", True),
        ("def f(n: float | None = None): return n or _TIME", True),
        ("op: BuiltinOperator | None\nop or name or None", True),
        ("macs: int | None\n(macs if work else None) or None", True),
        ("n: int | None\nn or 0", False),
        ("n: str\nn or 5", False),
        ("def f(*n: int): return n or (0,)", False),
        ("n: int\nif n or m: pass", False),
    ],
)
def test_a_zero_that_is_replaced_is_found(code: str, found: bool) -> None:
    tree = ast.parse(code)
    assert bool(list(replaced(tree, by_name(tree)))) is found
