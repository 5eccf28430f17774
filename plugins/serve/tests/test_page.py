"""docs/serving.md, run as it is written, and the Dockerfile that it names."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import typer
from plugins.serve.tests.serving import ROOT, Server

from oplet_serve import command
from oplet_serve.doors.bounds import Bounds
from oplet_serve.options import Options

PAGE = (ROOT / "docs" / "serving.md").read_text("utf-8")
DOCKERFILE = (ROOT / "examples" / "serving" / "Dockerfile").read_text("utf-8")


def parser() -> Any:
    app = typer.Typer()
    app.command()(command.serve)
    return typer.main.get_command(app)


def test_the_page_s_code_runs_and_its_assertions_hold(server: Server) -> None:
    names: dict[str, Any] = {"__name__": "page", "server": f"http://127.0.0.1:{server.http_port}"}
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))
    assert len(blocks) == 4
    for block in blocks:
        exec(compile("\n" * PAGE.count("\n", 0, block.start(1)) + block[1], "serving.md", "exec"), names)
    Options.read("page", names["settings"]["parameters"]["extra"])


def test_the_page_s_defaults_are_those_of_the_command_and_the_runtime() -> None:
    rows = {
        name: float(value.replace(",", "")) for name, value in re.findall(r"^\| `--([\w-]+)` \| ([\d,]+)[ ;]", PAGE, re.MULTILINE)
    }
    assert len(rows) == 12
    defaults = {option.opts[0].removeprefix("--"): option.default for option in parser().params}
    assert defaults["max-request-bytes"] is None  # two defaults, of HTTP and gRPC
    defaults["max-request-bytes"] = Bounds.max_request_bytes
    assert f"; {Bounds.max_message_bytes:,} over gRPC" in PAGE
    settings = {field.name.replace("_", "-"): field.default for kind in (Bounds, Options) for field in fields(kind)}
    for name, value in rows.items():
        assert defaults[name] == value == settings[name], name
    assert set(re.findall(r"`--([\w-]+)", PAGE)) <= set(defaults)


def test_the_image_has_a_user_without_rights_and_a_command_that_parses() -> None:
    lines = [line.partition(" ") for line in DOCKERFILE.splitlines() if line and not line.startswith("#")]
    found = {word: rest for word, _, rest in lines}
    user, _, group = found["USER"].partition(":")
    assert int(user) > 0
    assert int(group) > 0
    assert f"--uid {user}" in DOCKERFILE
    words = [word for word, _, _ in lines]
    assert words.index("USER") < words.index("ENTRYPOINT")
    program, *arguments = json.loads(found["ENTRYPOINT"])
    assert program == "oplet-serve"
    context = parser().make_context(program, arguments)
    ports = [str(context.params[name]) for name in ("http_port", "grpc_port", "metrics_port")]
    assert found["EXPOSE"].split() == ports
    assert context.params["host"] == "0.0.0.0"
    assert context.params["models"] == [Path(shlex.split(found["COPY"])[1].rstrip("/"))]
    compile(json.loads(found["HEALTHCHECK"].removeprefix("CMD "))[2], "healthcheck", "exec")


def test_both_commands_are_there() -> None:
    from oplet import PluginManager

    assert PluginManager().commands().find("serve").load() is command.serve
    with pytest.raises(typer.BadParameter, match="65535"):
        parser().make_context("oplet-serve", ["x", "--http-port", "9000000"])
