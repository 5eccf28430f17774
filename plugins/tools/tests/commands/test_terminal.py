"""Tables and lines in terminals: nothing is broken at 80 columns, and what every command prints is kept in files."""

from __future__ import annotations

import logging
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plugins.tools.tests.commands.terminal_outputs import (
    COMMANDS,
    FOLDER,
    GROUPS,
    MODES,
    PLUGIN_COMMANDS,
    printed,
    versions,
    wanted,
)
from plugins.tools.tests.commands.test_documented_commands import SUMMARY
from rich.cells import cell_len

from oplet.plugins.known_packages import known
from oplet.plugins.manager import PluginManager
from oplet_tools.cli.app import COMMANDS as REGISTERED
from oplet_tools.cli.console import Column, Printer, layout, parse_column
from oplet_tools.cli.main import _Formatter
from oplet_tools.cli.row_report import row_report

words = st.text("ab ", max_size=40)
NAMES = [*COMMANDS, *PLUGIN_COMMANDS]
columns = st.builds(Column, st.text("ab", max_size=8), st.booleans(), st.booleans(), st.integers(0, 3))


def plain(name: str, mode: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", wanted(name, mode).read_text("utf-8"))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("plugins", GROUPS)
def test_every_command_prints_what_the_files_say(mode: str, plugins: str) -> None:
    for plugin in (
        *plugins.split(","),
        "openvino_delegate",
    ):  # the last one's name is the longest: columns are as wide where it is blocked
        pytest.importorskip(f"oplet_{plugin}")
    if (FOLDER / "versions.txt").read_text() != versions():
        pytest.skip("the files are of other versions of rich and typer")
    for name, text in printed(plugins)[mode].items():
        assert text == wanted(name, mode).read_text("utf-8"), (
            f"{name}: python -m plugins.tools.tests.commands.terminal_outputs writes the files anew"
        )


def test_every_command_has_a_file() -> None:
    shown = {command.split()[0] for command in COMMANDS.values()}
    named = {function.__name__.replace("_", "-") for function in REGISTERED}
    named |= set(known()["oplet-build"]["commands"])
    assert named ^ shown == {"--help"}
    assert set(SUMMARY) <= named
    of_plugins = {command.split()[0] for command in PLUGIN_COMMANDS.values()}
    assert {entry.name for entry in PluginManager().commands().entries()} <= of_plugins | named
    kept = {path.name for path in FOLDER.glob("*.txt")} - {"versions.txt"}
    assert kept == {f"{name}.{mode}.txt" for name in NAMES for mode in MODES}


@pytest.mark.parametrize("name", [name for name in NAMES if "--wide" not in COMMANDS.get(name, "")])
@pytest.mark.parametrize(("mode", "width"), [("80", 80), ("no-color", 80), ("120", 120)])
def test_no_line_is_longer_than_the_terminal_is_wide(name: str, mode: str, width: int) -> None:
    # Standard error is no terminal here.
    lines = plain(name, mode).partition("--- standard error\n")[0].splitlines()
    assert [line for line in lines if cell_len(line) > width] == []


@pytest.mark.parametrize("name", [name for name in NAMES if not name.endswith("help")])
@pytest.mark.parametrize("mode", ["80", "120", "no-color"])
def test_no_number_and_no_name_is_broken(name: str, mode: str) -> None:
    whole = set(plain(name, "pipe").split())
    shown = re.sub(r"^left out: [^(]*\(--wide\)$", "", plain(name, mode), flags=re.MULTILINE)
    broken = {token for token in shown.split() if token not in whole and not re.fullmatch("─+", token)}
    assert {token for token in broken if token.removesuffix(":") not in whole} == set()


@pytest.mark.parametrize("name", NAMES)
def test_pipes_and_no_color_get_no_escapes_of_colour(name: str) -> None:
    assert "\x1b" not in wanted(name, "pipe").read_text("utf-8")
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]", wanted(name, "no-color").read_text("utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_a_pipe_leaves_no_column_out(name: str) -> None:
    assert "(--wide)" not in wanted(name, "pipe").read_text("utf-8")


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("help")])
def test_no_sentence_of_a_help_is_cut_off(name: str) -> None:
    assert not re.search(r"\w\.\.\.$", plain(name, "80"), re.MULTILINE)


def test_the_summaries_of_the_help_are_whole_sentences() -> None:
    help = plain("help", "80")
    for summary in REGISTERED.values():
        assert summary.endswith(".")
        assert re.search(rf" {re.escape(summary)}$", help, re.MULTILINE)


@given(st.lists(columns, min_size=1, max_size=6).flatmap(
    lambda found: st.tuples(st.just(found), st.lists(st.tuples(*[words] * len(found)), max_size=4), st.integers(1, 120))
))  # fmt: skip
def test_a_layout_fits_and_breaks_nothing(case: tuple[list[Column], list[tuple[str, ...]], int]) -> None:
    found, rows, width = case
    chosen = layout(found, rows, width)
    always = [number for number, column in enumerate(found) if not column.optional]
    natural = [max(map(cell_len, (column.title, *(row[n] for row in rows)))) for n, column in enumerate(found)]
    if chosen is None:
        texts = [[found[n].title, *(row[n] for row in rows)] for n in always]
        least = [
            max((len(word) for text in column for word in text.split()), default=0) if found[n].text else natural[n]
            for n, column in zip(always, texts)
        ]
        assert sum(least) + 2 * (len(always) - 1) > width
        return
    assert set(always) <= set(chosen.columns)
    assert len(chosen.columns) + len(chosen.left_out) == len(found)
    if chosen.columns:
        assert sum(chosen.widths) + 2 * (len(chosen.columns) - 1) <= width
    for number, size in zip(chosen.columns, chosen.widths):
        if found[number].text:
            assert size >= max((len(word) for row in rows for word in row[number].split()), default=0)
        else:
            assert size == natural[number]
    if sum(natural) + 2 * (len(found) - 1) <= width:
        assert chosen.left_out == []


def test_marks_of_columns_are_read() -> None:
    assert parse_column("ms#??") == Column("ms", True, False, 2)
    assert parse_column("why it stays~") == Column("why it stays", False, True, 0)
    assert parse_column("90 %#?") == Column("90 %", True, False, 1)
    assert parse_column("") == Column("")


def test_an_optional_column_that_says_nothing_is_left_out_and_others_stay(capsys: pytest.CaptureFixture[str]) -> None:
    Printer(wide=True).table("", ["name", "got??", "fix~", "error#?"], [("x", "", "", ""), ("y", "", "", "3")])
    assert capsys.readouterr().out.split()[:3] == ["name", "fix", "error"]


def test_a_name_of_megabytes_loses_its_middle_in_lines_and_tables(capsys: pytest.CaptureFixture[str]) -> None:
    Printer(wide=True).line(f"head{'n' * 1_000_000}tail")
    Printer(wide=True).table("", ["name"], [[f"head{chr(27) * 1_000_000}tail"]])
    said = "".join(capsys.readouterr().out.split())
    assert said.count("head") == said.count("tail") == 2
    assert len(said) < 20_000


def test_the_error_of_a_row_names_the_row_once(capsys: pytest.CaptureFixture[str]) -> None:
    with row_report(False, bar=False) as report:
        report.failed("a.jsonl:1", "'a.jsonl:1' has no value for the input 'x'; it has nothing.")
        report.failed("a.jsonl:2", "The model refuses it.")
    said = capsys.readouterr().err
    assert said.splitlines() == [
        "oplet: a.jsonl:1 has no value for the input 'x'; it has nothing.",
        "oplet: a.jsonl:2: The model refuses it.",
    ]


def test_warnings_are_wrapped_for_a_terminal_as_errors_are(monkeypatch: pytest.MonkeyPatch) -> None:
    record = logging.LogRecord("oplet", logging.WARNING, "", 0, "word " * 60, None, None)
    assert len(_Formatter().format(record).splitlines()) == 1
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    lines = _Formatter().format(record).splitlines()
    assert len(lines) > 2
    assert max(map(len, lines)) <= 80
