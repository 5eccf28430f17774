"""Commands that plugins add to `oplet`: listed, run and refused as its own are, and looked for only when one is named."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from tests.children import run_child
from tests.places import EXAMPLES

from oplet import PluginManager
from oplet.plugins.known_packages import known
from oplet_testing.distributions import fake_distribution
from oplet_tools.cli.app import app
from oplet_tools.cli.main import main

HOOK = """
from oplet import hookimpl
@hookimpl
def register_commands(registry):
    registry.add("greet", "greeting.cli:app", "Greet and part.")
    registry.add("wave", "greeting.cli:wave", "Wave.")
"""
CLI = """
import typer
from typing import Annotated
from oplet.errors import TensorError
app = typer.Typer(help="Greet and part.")

@app.command()
def hello(name: str, json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    \"\"\"Say hello.\"\"\"
    typer.echo('{"hello": "%s"}' % name if json else f"hello {name}")

@app.command()
def bye(code: int = 0) -> None:
    \"\"\"Say goodbye.\"\"\"
    if code == 5:
        raise TensorError("It would be a pity.")
    if code == 6:
        raise ZeroDivisionError("again")
    raise typer.Exit(code)

def wave(times: float = 1.0) -> None:
    \"\"\"Wave, once or more.\"\"\"
    typer.echo(f"waves {times}")
"""


@pytest.fixture
def add(tmp_path, monkeypatch):
    """Installs a made-up package besides those that are there, each in a folder of its own."""

    def install(name, version, modules):
        path = tmp_path / name
        fake_distribution(path, name, version, {name: next(iter(modules))}, modules)
        monkeypatch.syspath_prepend(str(path))
        return path

    yield install
    for name in [name for name in sys.modules if name.split(".")[0] in ("greeting", "other", "broken")]:
        del sys.modules[name]


@pytest.fixture
def site(add):
    """The folder of the package whose commands the tests use."""
    return add("greeting", "1.2", {"greeting.hooks": HOOK, "greeting.cli": CLI})


def test_the_commands_of_this_project_s_packages_are_known():
    ours = {entry.name: entry.provenance.distribution for entry in PluginManager().commands().entries()}
    listed = {command: package for package, brought in known().items() for command in brought.get("commands", ())}
    assert ours.items() <= listed.items()
    assert not listed.keys() & {info.name or info.callback.__name__.replace("_", "-") for info in app.registered_commands}


def test_the_help_lists_them_with_their_packages_and_imports_none(oplet, site):
    told = oplet("--help").out
    assert "Commands of plugins:" in told
    assert "Greet and part. (greeting 1.2)" in told
    assert "Wave. (greeting 1.2)" in told
    assert "greeting" in sys.modules
    assert "greeting.cli" not in sys.modules
    assert told.index("new-op") < told.index("greet")


@pytest.mark.parametrize(
    ("arguments", "code", "out", "err"),
    [
        (["greet", "hello", "you"], 0, "hello you\n", ""),
        (["greet", "hello", "you", "--json"], 0, '{"hello": "you"}\n', ""),
        (["wave", "--times", "2"], 0, "waves 2.0\n", ""),
        (["greet", "bye", "--code", "3"], 3, "", ""),
        (["greet", "bye", "--code", "5"], 1, "", "oplet: It would be a pity.\n"),
        (
            ["greet", "bye", "--code", "6"],
            1,
            "",
            "oplet: unexpected ZeroDivisionError: again (--debug shows where; please report it)\n",
        ),
    ],
)
def test_they_run_and_fail_as_oplets_own_do(oplet, site, arguments, code, out, err):
    ran = oplet(*arguments)
    assert (ran.code, ran.out, ran.err) == (code, out, err)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["greet", "hello"], "Missing argument"),
        (["greet", "bye", "--code", "x"], "Invalid value for '--code'"),
        (["wave", "--times", "nan"], "nan is no finite number"),
        (["greet", "nonsense"], "No such command 'nonsense'"),
        (["nonsense"], "No such command 'nonsense'"),
        (["-p", "no:greeting", "greet", "hello", "you"], "No such command 'greet'"),
    ],
)
def test_wrong_usage_is_told_as_everywhere(oplet, site, arguments, reason):
    ran = oplet(*arguments)
    assert ran.code == 2
    assert reason in ran.err


def test_their_help_is_plain_and_without_options_of_no_use(oplet, site):
    told = oplet("greet", "-h").out
    assert "Usage: " in told
    assert "hello  Say hello." in told
    assert "completion" not in told
    assert "─" not in told + oplet("wave", "--help").out


def test_debug_shows_where_it_fails(site):
    with pytest.raises(ZeroDivisionError):
        main(["--debug", "greet", "bye", "--code", "6"])


def test_a_broken_plugin_is_one_line_and_the_others_commands_run(oplet, site, add):
    add("broken", "3.0", {"broken": "import not_there_at_all"})
    ran = oplet("greet", "hello", "you")
    assert (ran.code, ran.out) == (0, "hello you\n")
    [line] = ran.err.splitlines()
    assert line.startswith("oplet: warning: Plugin 'broken' of broken 3.0 is left out: ModuleNotFoundError")
    assert "greet" in oplet("--help").out


def test_a_command_whose_module_is_broken_is_one_line(oplet, site):
    (site / "greeting" / "cli.py").write_text("import not_there_at_all")
    ran = oplet("wave")
    assert ran.code == 1
    assert ran.err.startswith(
        "oplet: The command 'wave' of greeting 1.2 cannot be imported from 'greeting.cli:wave': ModuleNotFoundError"
    )
    assert ran.err.count("\n") == 1
    assert "Wave. (greeting 1.2)" in oplet("--help").out


def test_what_typer_makes_no_command_of_is_one_line(oplet, site):
    (site / "greeting" / "cli.py").write_text("def wave(times: 'nonsense'): pass")
    ran = oplet("wave")
    assert ran.code == 1
    assert ran.err.startswith("oplet: The command 'wave' of greeting 1.2 cannot be used: ")
    assert ran.err.count("\n") == 1


SWITCHED_OFF = [
    (["-p", "no:build"], {}, "switched off by -p no:build"),
    (["-p", "no:oplet-build"], {}, "switched off by -p no:oplet-build"),
    ([], {"OPLET_DISABLE_PLUGINS": "build"}, "switched off by OPLET_DISABLE_PLUGINS=build"),
    ([], {"OPLET_PLUGINS": "no:build"}, "switched off by OPLET_PLUGINS=no:build"),
    ([], {"OPLET_PLUGINS": "oplet-builtin-ops"}, "not among those that OPLET_PLUGINS allows"),
]


@pytest.mark.parametrize("command", ["build", "select"])
@pytest.mark.parametrize(("switches", "variables", "reason"), SWITCHED_OFF)
def test_a_command_whose_package_is_switched_off_says_so(oplet, monkeypatch, command, switches, variables, reason):
    pytest.importorskip("oplet_build")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    ran = oplet(*switches, command, "model.tflite")
    assert ran.code == 2
    assert ran.err.endswith(f"No such command '{command}': oplet-build, which brings it, is {reason}.\n")


def test_a_command_whose_package_is_not_installed_says_what_to_install(oplet, monkeypatch):
    monkeypatch.setattr("oplet.installed.entry_points", lambda group: ())
    ran = oplet("serve", "model.tflite")
    assert ran.code == 2
    assert ran.err.endswith("No such command 'serve': a package of its own brings it: pip install oplet-serve.\n")


def test_a_name_of_oplets_own_stays_its_own(oplet, site, add):
    other = HOOK.replace('"greet"', '"versions"').replace('"wave"', '"bow"')
    add("other", "1.0", {"other": other})
    assert "Show which versions" in oplet("versions", "--help").out
    ran = oplet("--help")
    assert "Wave. (other 1.0)" in ran.out
    assert "Greet and part. (other 1.0)" not in ran.out
    assert ran.err == "oplet: warning: The command 'versions' of other 1.0 is not reached: oplet has one of that name.\n"
    assert ran.err.count("The command 'versions' of other 1.0 is not reached: oplet has one of that name.") == 1
    ran = oplet("bow", "--times", "2")
    assert (ran.code, ran.out) == (0, "waves 2.0\n")
    assert ran.err.count("\n") == 1
    [info] = [info for info in json.loads(oplet("plugins", "--json").out) if info["name"] == "other"]
    assert info["commands"] == ["bow", "versions"]


def test_two_packages_of_one_command_are_named_when_it_is_used(oplet, site, add):
    add("other", "1.0", {"other": HOOK})
    ran = oplet("wave")
    assert ran.code == 1
    assert (
        ran.err
        == "oplet: The command 'wave' is brought by greeting 1.2 and other 1.0; leave one out: oplet -p no:other wave ...\n"
    )
    assert oplet("-p", "no:other", "wave").out == "waves 1.0\n"


@pytest.mark.parametrize("arguments", [["--version"], ["run", "--help"], ["versions", "--help"]])
def test_no_plugin_is_looked_for_where_oplets_own_command_is_named(site, arguments):
    code = f"import sys; sys.argv[1:] = {arguments!r}\nfrom oplet_tools.cli.main import main\ntry: main()\nfinally: print(*sys.modules)"
    path = f"import sys; sys.path.insert(0, {str(site)!r})\n"
    done = subprocess.run([sys.executable, "-c", path + code], capture_output=True, text=True)
    assert not done.returncode, done.stderr
    loaded = set(done.stdout.splitlines()[-1].split())
    assert not loaded & {"greeting", "pluggy", "importlib_metadata", "numpy"}


def test_running_a_model_imports_no_plugins_command(oplet, site):
    assert oplet("run", EXAMPLES / "atan" / "atan.tflite").code == 0
    assert "greeting" in sys.modules  # asked for its ops
    assert "greeting.cli" not in sys.modules


def test_an_interrupt_before_the_command_begins_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("oplet_tools.cli.main._command", interrupted)
    with pytest.raises(SystemExit) as ended:
        main(["plugins"])
    assert ended.value.code == 130


def test_an_uninstalled_core_is_told_in_one_sentence() -> None:
    program = """
import sys

class Uninstalled:
    def find_spec(self, name, path=None, target=None):
        if name == "oplet":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Uninstalled())
from oplet_tools.cli.main import main
main(["plugins"])
"""
    said = run_child([sys.executable, "-c", program], code=1).stderr
    assert said.startswith("oplet: oplet-core is not installed")
    assert said.count("\n") == 1
