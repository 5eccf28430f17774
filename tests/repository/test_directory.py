"""The directory of plugins: each check of an entry refuses what it is there for, and our own entries pass all of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scripts import directory
from scripts.directory_page import page

GOOD: dict[str, Any] = {
    "package": "waves",
    "summary": "Operators of waves",
    "keeper": "Waves Ltd",
    "source": "https://example.com/waves",
    "licence": "MIT",
    "python": ">=3.10",
    "oplet": ">=0.1,<0.2",
    "parity": "numbers are those of the runtime of Waves Ltd",
    "ops": ["Wave", "WaveBack"],
    "builtin_ops": {"CONV_2D": "1-8", "ABS": "1"},
}
OTHER = {**GOOD, "package": "other-waves", "builtin_ops": {}, "ops": ["OtherWave"]}
Write = Callable[..., list[str]]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write entries and return what is wrong with them."""

    def written(*entries: dict[str, Any]) -> list[str]:
        for entry in entries:
            (tmp_path / f"{entry['package']}.toml").write_text(directory.text(entry), "utf-8")
        return directory.problems(tmp_path)

    return written


def test_the_entries_of_this_repository_pass() -> None:
    assert directory.problems() == []
    assert len(directory.entries()) > 20


def test_a_good_entry_passes_and_is_read_as_it_was_written(write: Write, tmp_path: Path) -> None:
    assert write(GOOD, OTHER) == []
    assert directory.entries(tmp_path) == {"waves": GOOD, "other-waves": {k: v for k, v in OTHER.items() if v}}


@pytest.mark.parametrize("field", [key for key in GOOD if key not in ("package", "ops", "builtin_ops")])
def test_a_field_that_is_missing_or_empty_is_refused(write: Write, field: str) -> None:
    for entry in ({key: value for key, value in GOOD.items() if key != field}, {**GOOD, field: ""}):
        assert f"waves.toml: {field} is missing." in write(entry)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"summary": "two\nlines"}, "summary is to be one line"),
        ({"keeper": "a | b"}, "keeper is to be one line"),
        ({"parity": "x" * 241}, "at most 240 characters"),
        ({"licence": "Apache 2"}, "no SPDX expression"),
        ({"python": "3.10 and newer"}, "python is '3.10 and newer', which is no range of versions"),
        ({"oplet": "0.1"}, "oplet is '0.1', which is no range of versions"),
        ({"source": "http://example.com/waves"}, "source is to be an address"),
        ({"source": "plugins/waves"}, "or a folder of this repository's plugins/"),
        ({"source": "plugins/../core"}, "or a folder of this repository's plugins/"),
        ({"source": "plugins/atan_op"}, "the folder of another package"),
        ({"package": "oplet-waves"}, "are this project's own"),
        ({"package": "oplet"}, "are this project's own"),
        ({"package": "Waves_Ops"}, "waves-ops.toml"),
        ({"ops": ["Wave", "Wave"]}, "ops has a name twice"),
        ({"ops": ["Wave", " "]}, "ops is to be a list of names"),
        ({"ops": ["CONV_2D"]}, "which is a built-in operator; it belongs to builtin_ops"),
        ({"families": ["W"]}, "with which ops of other packages may begin"),
        ({"builtin_ops": {"Wave": "1"}}, "builtin_ops has Wave, which is no built-in operator"),
        ({"builtin_ops": {"ABS": "from 1"}}, "give its versions"),
        ({"ops": [], "builtin_ops": {}}, "it brings nothing"),
    ],
)
def test_what_is_wrong_with_an_entry_is_told(write: Write, changes: dict[str, Any], complaint: str) -> None:
    found = write({**GOOD, **changes})
    assert len(found) == 1
    assert complaint in found[0]


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        ('homepage = "x"', "there is no field homepage"),
        ('advised = "no"', "advised is to be of type bool"),
        ('ops = "Wave"', "ops is to be of type list"),
        ("=", "is no TOML file"),
    ],
)
def test_what_no_entry_has_is_refused(write: Write, tmp_path: Path, more: str, complaint: str) -> None:
    entry = {key: value for key, value in GOOD.items() if key != "builtin_ops" and (key != "ops" or "ops" not in more)}
    (tmp_path / "waves.toml").write_text(f"{directory.text(entry)}{more}\n", "utf-8")
    assert complaint in directory.problems(tmp_path)[0]


def test_a_file_is_named_as_its_package_is(tmp_path: Path) -> None:
    (tmp_path / "else.toml").write_text(directory.text(GOOD), "utf-8")
    [complaint] = directory.problems(tmp_path)
    assert "waves.toml" in complaint


def test_an_op_is_advised_of_one_package_alone(write: Write, tmp_path: Path) -> None:
    rival = {**OTHER, "ops": ["Wave"]}
    [complaint] = write(GOOD, rival)
    assert complaint.startswith("waves.toml: ops has Wave, for which messages advise the package of other-waves.toml already")
    assert write({**GOOD, "advised": False}, rival) == []
    told = json.loads(directory.data(directory.entries(tmp_path), "0.1.0"))
    assert told["other-waves"]["ops"] == ["Wave"]
    assert "ops" not in told["waves"]


def test_a_package_that_does_not_say_it_works_with_this_oplet_is_shown_and_not_advised(write: Write, tmp_path: Path) -> None:
    assert write(GOOD, {**OTHER, "oplet": ">=0.2,<0.3"}) == []
    found = directory.entries(tmp_path)
    assert list(json.loads(directory.data(found, "0.1.0"))) == ["waves"]
    shown = page(found, "0.1.0").partition("## other-waves")[2]
    assert "does not say that it works with oplet 0.1.0" in shown.partition("## waves")[0]
    assert "does not say" not in shown.partition("## waves")[2]


def test_the_page_shows_every_name_of_an_entry() -> None:
    text = page(directory.entries(), "0.1.0")
    for package, entry in directory.entries().items():
        part = text.partition(f"\n## {package}\n")[2].partition("\n## ")[0]
        for kind in (*directory.BROUGHT, "builtin_ops"):
            for name in entry.get(kind, ()):
                assert f"`{name}`" in part, (package, name)


def test_the_beginning_of_an_entry_is_printed_of_an_installed_package_and_compared_with_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    directory.main(["--new", "oplet-atan-op"])
    printed = capsys.readouterr().out
    assert 'ops = ["Atan"]' in printed
    assert 'oplet = ">=0.1,<0.2"' in printed
    assert 'parity = ""' in printed
    directory.main(["--compare", "oplet_atan_op"])
    monkeypatch.setattr(directory, "entries", lambda: {"oplet-atan-op": {"ops": ["Tan"]}})
    with pytest.raises(SystemExit, match="ops is ..Tan.., and the package has ..Atan"):
        directory.main(["--compare", "oplet-atan-op"])
    with pytest.raises(SystemExit, match="is not installed: pip install nobodys-ops"):
        directory.main(["--new", "nobodys-ops"])
