"""Names from a stranger's model never reach a terminal, a log or a reader as they are, whichever text they stand in."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fuzz import seed_graphs, seed_ops
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oplet import Model, MutableOpResolver
from oplet.errors import ModelError, OpletError, OpVersionError, text_of
from oplet.texts import LONGEST, logger_of, one_line, plain, shown

from .ways import check, check_error, everything, named

#: Escapes, controls, changes of direction, separators, halves of surrogate pairs, bytes that are no UTF-8.
BAD = [
    "\x1b[31m", "\x1b]0;t\x07", "\n", "\r", "\t", "\0", "\x7f", "\x9b", "\u202a", "\u202e", "\u2066", "\u2069", "\u200e", "\u200f", "\u061c",
    "\u2028", "\u2029", "\ud800", "\udfff", "\udcff", "\udc80", "\ufeff", "\U000e0041", "\x85",
]  # fmt: skip
FINE = ["conv/bias", "层", "слой", "طبقة", "שכבה", "परत", "ชั้น", "é", "🙂", "'", '"', "{x}", "%s", "\\", "/", ".."]

names = st.lists(st.sampled_from(BAD + FINE), min_size=1, max_size=6).map("".join)


def seeds() -> dict[str, bytes]:
    """Models with every kind of name: of signatures, custom ops, composites, resources, files, branches."""
    graphs = seed_graphs.make()
    wanted = ("HASHTABLE", "VAR_HANDLE", "STABLEHLO_COMPOSITE", "ADD", "CONV_2D")
    return graphs | {name: data for name, data in seed_ops.make().items() if name.split("/")[0].split(" ")[0] in wanted}


SEEDS = seeds()
RELAXED = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]


#: One with signatures and branches, one with names of resources; all of them in the long tests.
FEW = list(SEEDS)[:1] + [seed for seed in SEEDS if seed.startswith(("VAR_HANDLE", "STABLEHLO_COMPOSITE"))][:2]


@pytest.mark.parametrize("seed", [seed if seed in FEW else pytest.param(seed, marks=pytest.mark.sweep) for seed in SEEDS])
def test_no_text_carries_what_a_terminal_or_a_reader_would_obey(seed: str, tmp_path: Path) -> None:
    @settings(max_examples=3, derandomize=True, deadline=None, database=None, suppress_health_check=RELAXED)
    @given(names)
    def clean(name: str) -> None:
        everything(named(SEEDS[seed], name), name, tmp_path)

    clean()
    everything(named(SEEDS[seed], "".join(BAD)), "".join(BAD), tmp_path)


def test_a_name_of_ten_megabytes_makes_no_such_message(tmp_path: Path) -> None:
    name = "x\x1b" * 5_000_000
    everything(named(next(iter(SEEDS.values())), name), name[:1000], tmp_path)


@pytest.mark.parametrize("seed", FEW[:1])
def test_the_command_prints_nothing_of_it(seed: str, oplet: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    for name in ("".join(BAD), "\u202e" * 30):
        path.write_bytes(named(SEEDS[seed], name))
        commands: list[list[Any]] = [
            ["inspect", path], ["inspect", path, "--json"], ["versions", path, "--nodes"], ["run", path], ["run", path, "--input", f"{name}=x.npy"],
            ["partition", path, "--delegate", "example"], ["rewrite", path, "-o", tmp_path / "out.tflite", "--batch", "3"],
            ["select", path], ["compare", path, "--delegate", "litert"], ["benchmark", path, "--num-runs", "3", "--min-secs", "0", "--warmup-min-secs", "0"],
        ]  # fmt: skip
        for command in commands:
            if any("\0" in str(part) or any("\ud800" <= c <= "\udfff" for c in str(part)) for part in command):
                continue  # no command line holds it
            with warnings.catch_warnings(record=True) as told:  # that a signature has a name twice
                ran = oplet(*command)
            for text in (ran.out, ran.err, *(str(each.message) for each in told)):
                check(text, lines=True)


@given(st.text(max_size=40) | names)
def test_plain_text_is_printable_encodable_and_stays_what_it_is(text: str) -> None:
    done = plain(text)
    check(done)
    assert plain(done) == done
    assert text.isprintable() == (done == text)


@pytest.mark.parametrize("text", [*FINE, "多", "🙂" * 30, "x" * LONGEST])
def test_letters_of_every_script_stay_readable(text: str) -> None:
    assert str(ModelError(text)) == plain(text) == text
    assert text in (one_line(text), f"{shown(text)}") or len(text) > 100


def test_what_is_too_long_loses_its_middle() -> None:
    error = ModelError("begin " + "\n" * 10_000_000 + " end")
    check_error(error)
    assert str(error).startswith("begin ")
    assert str(error).endswith(" end")
    assert "characters ...]" in str(error)
    assert shown("a" * 60 + "b" * 900 + "c" * 40) == "a" * 60 + "..." + "c" * 40 + " (1000 characters)"


def test_an_error_of_a_class_of_its_own_is_plain_too() -> None:
    class Silent(OpletError):
        def __init__(self, name: str) -> None:  # does not hand it on
            self.name = name

    class Multiple(OpletError, KeyError):
        pass

    for error in (Silent("\x1b"), Multiple("\x1b\u202e"), Multiple("\x1b", 3), OpVersionError("\n", "X", 3), OpletError()):
        for text in (str(error), repr(error)):
            check(text)
    error = OpletError("a")
    error.args = ("\x1b\ud800",)
    check(str(error))
    check(repr(error))


class Raising(Exception):
    """Cannot be printed."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __str__(self) -> str:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer  # type: ignore[no-any-return]

    __repr__ = __str__


class Sub(str):
    """A text that lies."""

    def isprintable(self) -> bool:
        return True

    def split(self, *arguments: Any) -> Any:
        raise SystemExit(3)


@pytest.mark.parametrize(
    "answer", [ValueError("x"), SystemExit(3), RecursionError(), 7, None, b"x", "", Sub("\x1b x"), "\x1b\n" * 5_000_000, "\ud800"]
)
def test_an_exception_that_cannot_be_printed_is_named(answer: Any) -> None:
    for named_ in (False, True):
        text = text_of(Raising(answer), named=named_)
        check(text)
        assert len(text) < 2000
    assert "Raising" in text_of(Raising(answer), named=True)
    check(str(OpletError(Raising(answer))))
    check(repr(OpletError(Raising(answer))))


def test_a_log_record_is_plain_whoever_formats_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "oplet")
    for logger in ("oplet.plugins", "oplet.tuning", "oplet.delegates"):
        logger_of(logger).info("%s and %r", "\x1b\u202e", "\x1b")
        logging.getLogger(logger).info("\x1b%s", "x" * 10_000_000)
    for message in caplog.messages:
        check(message)


def test_reprs_are_plain_and_short() -> None:
    data = named(next(iter(SEEDS.values())), "\x1b\u202e" * 500_000)
    model = Model.from_bytes(data)
    for subgraph in model.root.subgraphs or []:
        check(repr(subgraph))
        for tensor in subgraph.tensors or []:
            check(repr(tensor))


def test_ops_of_a_resolver_may_have_any_name() -> None:
    with pytest.raises(OpletError) as caught:
        MutableOpResolver().add_custom("\x1b\u202e", None)  # type: ignore[arg-type]
    check_error(caught.value)
