"""What operators make of strings is charged before: models of a few kilobytes end in time, within twice the limits of memory.

The models refer a million times to one text, or to a long one, or make of numbers that many strings; `texts_child.py` has them. No operator
that makes strings is without a case, nor without the helper that charges them.
"""

from __future__ import annotations

import ast
import json
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from tests.children import run_child
from tests.places import ROOT

pytest.importorskip("oplet_flex_ops")
pytest.importorskip("oplet_text_ops")
from oplet import MutableOpResolver

from .texts_child import CASES

#: How a case may end, and the part of the limit of memory that it may take.
_ENDS, _MOST = ("ran", "DeadlineError", "LimitError"), 2.0
_QUICK = ("FlexSubstr", "FlexStringNGrams", "TFText>ByteSplitByOffsets", "TFText>FastWordpieceDetokenize", "NormalizeUTF8")
#: Modules of operators that have to do with strings and make none, or none of a size that the model's values choose.
_OTHERS = {
    # Of strings they make numbers, whose tensors are charged.
    "oplet_text_ops.ops.string_length",
    "oplet_text_ops.ops.utf8_binarize", "oplet_text_ops.ops.sentence_fragments",
    # They move references.
    "oplet_flex_ops.ops.arithmetic.binary", "oplet_flex_ops.ops.arithmetic.comparison", "oplet_flex_ops.ops.arrays.counting",
    "oplet_flex_ops.ops.arrays.creation", "oplet_flex_ops.ops.arrays.gathering", "oplet_flex_ops.ops.arrays.layout",
    "oplet_flex_ops.ops.gradients.variables", "oplet_flex_ops.ops.ragged.variants", "oplet_flex_ops.ops.random.stateful",
    "oplet_flex_ops.ops.random.stateless", "oplet_flex_ops.ops.sequences.comparing", "oplet_builtin_ops.ops.dilate",
    "oplet_builtin_ops.ops.dynamic_update_slice", "oplet_builtin_ops.ops.embedding_lookup", "oplet_builtin_ops.elementwise.comparison",
    "oplet_builtin_ops.ops.fill", "oplet_builtin_ops.ops.gather", "oplet_builtin_ops.ops.gather_nd", "oplet_builtin_ops.control.hashtables",
    "oplet_builtin_ops.ops.hashtable_lookup", "oplet_builtin_ops.ops.lsh_projection",
    "oplet_builtin_ops.ops.stablehlo_pad", "oplet_builtin_ops.ops.tile", "oplet_builtin_ops.control.resources",
    # One string, of a file that is charged by itself.
    "oplet_flex_ops.ops.signal.wav",
}  # fmt: skip
#: What a module that makes strings has from the package's own modules instead of the helper itself.
_HELPED = {"each_text", "cut_all", "Detokenizer", "Decoder", "elementwise", "encoder"}


def _modules(package: str) -> dict[str, Path]:
    """The modules of a package, by name."""
    root = Path(str(import_module(package).__file__)).parent
    return {".".join((package, *path.relative_to(root).with_suffix("").parts)): path for path in root.rglob("*.py")}


def _names(path: Path) -> set[str]:
    """All names and attributes in a module."""
    nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
    imported = {alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}
    return {
        *imported,
        *(node.attr for node in nodes if isinstance(node, ast.Attribute)),
        *(node.id for node in nodes if isinstance(node, ast.Name)),
    }


def _about_strings() -> dict[str, set[str]]:
    """The names in each module of operators that speaks of strings."""
    packages = ("oplet_flex_ops", "oplet_text_ops", "oplet_builtin_ops")
    found = {
        module: _names(path)
        for package in packages
        for module, path in _modules(package).items()
        if {"ops", "control", "elementwise", "shaping"} & {*module.split(".")}
    }
    return {module: names for module, names in found.items() if "STRING" in names or "elementwise" in names}


def test_every_kernel_that_makes_strings_uses_the_helper() -> None:
    without = {
        module for module, names in _about_strings().items()
        if not {"StringMeter", "make_strings", *_HELPED} & names and module not in _OTHERS
    }  # fmt: skip
    assert not without, f"{sorted(without)} speak of strings, and charge none by oplet.kernels.strings"


def test_no_module_is_excused_that_is_gone() -> None:
    assert {*_about_strings()} >= _OTHERS


def _registered(package: ModuleType) -> dict[str, str]:
    """The registration of each operator that a package registers, as "module:NAME"."""
    found: dict[str, str] = {}

    class Names(MutableOpResolver):
        def add_custom(self, name: str, registration: object, *rest: object, **more: object) -> None:  # type: ignore[override]
            found[name] = str(registration)

    package.register_ops(Names())
    return found


def test_every_operator_that_makes_strings_has_a_case() -> None:
    about = {module for module in _about_strings() if module not in _OTHERS}
    known = {
        name: registration
        for package in ("oplet_flex_ops", "oplet_text_ops")
        for name, registration in _registered(import_module(package)).items()
    }
    makers = {name for name, registration in known.items() if registration.partition(":")[0] in about}
    numbers = {"FlexStringLength", "FlexRegexFullMatch", "FlexStaticRegexFullMatch", "FlexDecodeRaw", "FlexDecodePaddedRaw", "FlexUnicodeDecode", "FlexUnicodeDecodeWithOffsets"}  # fmt: skip
    numbers |= {"FlexStringToHashBucket", "FlexStringToHashBucketFast", "FlexStringToHashBucketStrong", "FlexStringToNumber"}
    for name in (
        "UnicodeDecode", "UnicodeDecodeWithOffsets", "UnicodeScript", "SentencepieceOp", "TFText>ByteSplitWithOffsets",
        "UnicodeScriptTokenizeWithOffsets", "WhitespaceTokenizeWithOffsets",
    ):  # fmt: skip
        numbers |= {name, f"Flex{name}"}
    same = {name for name in makers if known[name].startswith("oplet_flex_ops") and not name.startswith("Flex")}  # another name
    covered = {known[name] for name in CASES if name in known}
    same |= {name for name in makers - {*CASES} if known[name].startswith("oplet_text_ops") and known[name] in covered}
    assert makers - numbers - same == {*CASES} & {*known}


def check(op: str, *options: str) -> None:
    """Run the cases of an operator, and check how they ended."""
    done = run_child([sys.executable, "-m", "tests.hostile.texts_child", op, *options], cwd=ROOT)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines
    wrong = [line for line in lines if line[5].partition(":")[0] not in _ENDS or line[6] > _MOST]
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.parametrize("op", _QUICK)
def test_strings_of_a_small_model_stay_within_its_limits(op: str) -> None:
    check(op, "--few")


@pytest.mark.sweep
@pytest.mark.parametrize("op", CASES)
def test_strings_of_any_size_stay_within_the_limits(op: str) -> None:
    check(op)
