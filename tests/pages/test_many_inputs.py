"""docs/many-inputs.md, its commands run in the folder of the digits' example."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from tests.places import ROOT

from oplet_tools.running.many.keeping.results import _MOST_COLUMNS
from oplet_tools.running.many.kinds import ARROW, LINES
from oplet_tools.running.many.run import FORMATS
from oplet_tools.running.values import preprocessing

PAGE = (ROOT / "docs" / "many-inputs.md").read_text("utf-8")


def test_the_page_s_commands_print_what_it_says(oplet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "examples" / "digits", tmp_path, dirs_exist_ok=True)
    blocks = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    commands = [part.split("\n", 1) for block in blocks for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    assert len(commands) > 5
    for command, printed in commands:
        program, *arguments = shlex.split(command)
        if program == "echo":
            (tmp_path / arguments[2]).write_text(arguments[0] + "\n")
        elif program == "head":
            assert "".join((tmp_path / arguments[-1]).read_text().splitlines(True)[: int(arguments[1])]) == printed
        else:
            assert program == "oplet"
            ran = oplet(*arguments)
            assert ran.code == (3 if "failed" in printed else 0), ran.err
            assert printed
            for line in printed.splitlines():
                assert line in (ran.err + ran.out).splitlines(), (command, line, ran.err, ran.out)


def test_the_page_names_what_there_is() -> None:
    for name in (*FORMATS, *LINES, *ARROW, *preprocessing.FILTERS, *preprocessing.RESIZES, *preprocessing.ORDERS):
        assert f"`{name}`" in PAGE or f"`{name}`:" in PAGE, name
    for key in preprocessing._KEYS:
        assert f"`{key}=`" in PAGE
    assert f"more than {_MOST_COLUMNS} values" in PAGE
