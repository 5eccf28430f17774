"""Every option and argument of every command, given nonsense: wrong usage (2) or one sentence of oplet (1), no traceback, no silence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from oplet_tools.cli.app import app

pytestmark = pytest.mark.sweep

GROUP: Any = typer.main.get_command(app)
#: oplet's own, and those of oplet-build, where it is installed.
COMMANDS: dict[str, Any] = {**GROUP.commands} | {
    name: command for name in ("build", "select") if (command := GROUP.get_command(typer.Context(GROUP), name))
}
NONSENSE = ["", "nonsense", "1e999", "nan", "no/such/folder/file", "=x", "\0"]
#: What each command is given besides; MODEL and OUT stand for files.
USUAL = {
    "run": ["MODEL"],
    "compare": ["MODEL", "--delegate", "example:min_nodes=1", "--runs", "1"],
    "partition": ["MODEL", "--delegate", "example:min_nodes=1"],
    "explore": ["MODEL", "--times"],
    "benchmark": ["MODEL", "--num-runs", "1", "--min-secs", "0", "--warmup-min-secs", "0", "--max-secs", "1"],
    "tune": ["MODEL", "--max-secs", "0"],
    "rewrite": ["MODEL", "-o", "OUT"],
    "select": ["MODEL"],
    "build": ["MODEL", "--name", "x", "-o", "OUT"],
    "new-op": ["Foo"],
    "new-delegate": ["foo"],
    "behind": ["program.py"],
}
#: What may be any text, or any name of a file or folder that can be made, and is no nonsense then.
ANY_TEXT = {("rewrite", "--description"), ("behind", "arguments"), ("build", "--python"), ("tune", "--max-secs")}
WRITTEN = {
    ("partition", "--svg"), ("explore", "--output"), ("benchmark", "--profile-html"), ("benchmark", "--trace"), ("rewrite", "--output"), ("select", "--output"),
    ("select", "--lock"), ("select", "--requirements"), ("new-op", "--directory"), ("new-delegate", "--directory"), ("build", "--output"),
}  # fmt: skip
#: A name of a package's own, which may be almost anything, licences, which pip judges when a package is built, and tags of languages.
NAMES = {
    ("run", "--locale"),
    ("new-op", "name"),
    ("new-delegate", "name"),
    ("new-op", "--license"),
    ("new-delegate", "--license"),
    ("new-op", "--package"),
    ("new-delegate", "--package"),
    ("build", "--name"),
}


def cases() -> Iterator[Any]:
    for name, command in COMMANDS.items():
        for parameter in command.params:
            if not getattr(parameter, "is_flag", False):
                yield pytest.param(name, parameter, id=f"{name} {parameter.opts[0]}")


def is_sense(command: str, parameter: str, value: str) -> bool:
    """Whether what is nonsense elsewhere is none here."""
    if (command, parameter) in ANY_TEXT:
        return True
    if (command, parameter) in WRITTEN:
        folders = command.startswith("new-") or command == "build"  # which are made
        return (folders or "/" not in value) and "\0" not in value
    return (command, parameter) in NAMES and "/" not in value and value.replace("-", "").isalnum()


@pytest.mark.parametrize(("name", "parameter"), list(cases()))
def test_nonsense_is_told(
    oplet: Callable[..., Any],
    examples: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    parameter: Any,
) -> None:
    pytest.importorskip("oplet_example_delegate")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPLET_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "program.py").write_text("import ai_edge_litert.interpreter as i\ni.Interpreter('none.tflite')\n")
    model = str(examples / "digits" / "digits_float32.tflite")
    usual = [{"MODEL": model, "OUT": "out"}.get(word, word) for word in USUAL.get(name, ["MODEL"][: name not in ("plugins",)])]
    usual = [model if word == "MODEL" else word for word in usual]
    option = max(parameter.opts, key=len) if parameter.param_type_name == "option" else parameter.name
    for value in NONSENSE:
        if is_sense(name, f"--{option.lstrip('-')}" if option.startswith("-") else str(option), value):
            continue
        if parameter.param_type_name == "argument":
            ran = oplet(name, value, *usual[1:])
        else:
            rest = list(usual)
            for place, word in enumerate(rest):
                if word in parameter.opts:
                    del rest[place : place + 2]
                    break
            given = [f"{option}={value}"] if option.startswith("--") else [option, value]
            ran = oplet(name, *given, *rest) if name == "behind" else oplet(name, *rest, *given)
        told = f"oplet {name} with {value!r} as {option}: {ran.code} {ran.err[-500:]}"
        assert ran.code in (1, 2), told
        assert ran.err.strip(), told
        assert "Traceback" not in ran.err, told
        assert "unexpected" not in ran.err, told
        if ran.code == 1:
            assert len(ran.err.strip().splitlines()[-1]) < 1000, told
