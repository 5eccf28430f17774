"""The glossary in docs/glossary.md: its terms stand in the modules that it names, are used, and cover the words of the core's modules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.places import ROOT

PAGE = ROOT / "docs" / "glossary.md"
CORE = ROOT / "core" / "src" / "oplet"
SOURCES = (ROOT / "core" / "src", *sorted((ROOT / "plugins").glob("*/src")), ROOT / "tests")

#: Words in names of the core's modules that are English, or that LiteRT and the field use so: the glossary need not have them.
COMMON = frozenset(
    re.findall(
        "[a-z]+",
        """
        access accounting activations allocation appending applied arguments async asynchronous atomic attributes axes blas broadcasting buffer
        builder builders cache calls checks collector commands context control data decode decoder delegations dependencies describe descriptions
        details dispatch encode enums errors explain external facade files fixed flexbuffers folder graph handles hookimpl hookspecs
        initialization inlined install installed interpreter known limits load loaded loading main mapping math merged model naming numpy
        op operands operator options packages packing paths point processes profiler protobuf quantization reachability reading registry
        regular
        report requantization resolving rules runner save schema settings shapes signature signatures sizes source sparsity specifier
        stablehlo strings table tables task tensor texts threaded toolkit trailing type verifier verify version versions views weights
        windows workers write writing
        """,
    )
)


class Row(NamedTuple):
    term: str
    meaning: str
    module: str


def rows(page: str) -> list[Row]:
    return [Row(*found) for found in re.findall(r"^\| ([^|]+) \| ([^|]+) \| `([\w.]+)` \|$", page, re.MULTILINE)]


def path_of(module: str) -> Path | None:
    """The file of a module; the first part of a test's name is the folder of tests."""
    parts = module.removeprefix("tests.").replace(".", "/")
    return next(
        (path for root in SOURCES for path in (root / f"{parts}.py", root / parts / "__init__.py") if path.is_file()), None
    )


def stands_in(term: str, text: str) -> bool:
    """Whether a term stands in a text or in its names: with other endings, its words joined by blanks, "_" or a capital."""
    *words, last = term.split()
    words.append(re.sub(r"(e|y|ing)$", "", last) if len(last) > 4 else last)
    return all(word in text for word in words) and re.search(r"(?<![a-z])" + r"[\s_]*".join(words), text) is not None


@cache
def texts() -> dict[Path, str]:
    """All sources and pages except the glossary and this file, in lower case."""
    found = [path for root in SOURCES for path in root.rglob("*.py")] + [*(ROOT / "docs").rglob("*.md"), ROOT / "CONTRIBUTING.md"]
    return {path: path.read_text("utf-8").lower() for path in found if path not in (PAGE, Path(__file__))}


def faults(page: str) -> Iterator[str]:
    found = rows(page)
    terms = [row.term for row in found]
    if terms != sorted(set(terms)):
        yield "the terms are not in the order of the alphabet, each once"
    for term, _, module in found:
        path = path_of(module)
        if path is None:
            yield f"'{term}' is defined in {module}, which does not exist"
        elif not stands_in(term, texts()[path]):
            yield f"'{term}' does not stand in {module}"
        elif not any(stands_in(term, text) for other, text in texts().items() if other != path):
            yield f"'{term}' is used nowhere but in {module}"


def unexplained(names: set[str], page: str) -> set[str]:
    """The words of modules' names that are neither common nor in the glossary, as a term or in the name of a module that defines one."""
    known = {word for row in rows(page) for word in re.findall(r"[a-z]+", f"{row.term} {row.module}")}
    return {word for name in names for word in re.findall(r"[a-z]+", name)} - known - COMMON


def core_modules() -> set[str]:
    return {part for path in CORE.rglob("*.py") for part in path.relative_to(CORE).with_suffix("").parts if part != "__init__"}


def test_every_term_stands_in_its_module_and_is_used() -> None:
    page = PAGE.read_text("utf-8")
    assert len(rows(page)) > 60
    assert len(rows(page)) == page.count("\n| ") - 1  # every line of the table but its head
    assert list(faults(page)) == []


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("| thunk | x | `oplet.ops.nod` |", "'thunk' is defined in oplet.ops.nod, which does not exist"),
        ("| quokka | x | `oplet.ops.node` |", "'quokka' does not stand in oplet.ops.node"),
        (
            "| thunk | x | `oplet.ops.node` |\n| arena | x | `oplet.runtime.memory.arena_planner` |",
            "the terms are not in the order",
        ),
    ],
)
def test_a_wrong_line_is_found(line: str, fault: str) -> None:
    assert fault in "; ".join(faults(f"| term | meaning | module |\n|---|---|---|\n{line}\n"))


def test_names_of_the_core_s_modules_are_explained() -> None:
    assert unexplained(core_modules(), PAGE.read_text("utf-8")) == set()


def test_a_new_word_of_the_house_is_found() -> None:
    assert unexplained({"arena_planner", "quokka_files"}, PAGE.read_text("utf-8")) == {"quokka"}
