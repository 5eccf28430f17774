"""The commands in README, docs and the packages' pages run, with every package of the repository installed and with the numpy kernels alone.

Whoever documents a command that this test cannot run as it stands says below how, or why not.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import pytest
from tests.children import run_child
from tests.places import ROOT, name_of

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "plugins").glob("*/README.md")])
PACKAGES = sorted(name_of(project.parent) for project in (ROOT / "plugins").glob("*/pyproject.toml"))
#: What begins a command, where the line is one of code.
COMMAND = re.compile(r"(?:\./|\.\./)?(?:[\w.]+/)*(?:oplet|python3?|pip|pytest|sh|cd|echo)\b(?=[ \w]* [\w./'\"-])")

#: Why a documented command is not run here: what matches one of these begins so.
NOT_RUN = {
    r"(\S*/)?pip ": "installs; plugins/tools/tests/scaffolding/test_tutorial.py, test_writing_a_delegate.py and test_build_wheel.py install for real",
    r"(\S*/)?pytest ": "runs other tests",
    r"(author|user|training)/bin/|\.\./author/|cd |echo ": "the tutorial, which plugins/tools/tests/scaffolding/test_tutorial.py follows from end to end",
    r"! user/bin/": "the tutorial",
    r"python3 -m venv ": "the tutorial",
    r"sh scripts/test\.sh": "runs this test",
    r"oplet --(install|show)-completion": "changes the user's shell, or asks which one it is; test_completion.py asks for each",
    r"sh scripts/demo\.sh": "makes an environment; test_the_demo_runs does so",
    r"sh scripts/wheels\.sh": "makes wheels of the clone; tests/repository/test_advice_in_a_clone.py installs from it",
    r"sh scripts/fuzz\.sh|python -m fuzz": "takes minutes; tests/hostile/test_fuzz.py runs this module",
    r"oplet .*--delegate libneg\.so\b": "the library of docs/native-delegates.md, in tests/pages/test_native_delegates.py",
    r"oplet .*--delegate litert:library=": "a library that works in LiteRT alone; plugins/native_ops/tests/delegates/test_in_litert.py has one",
    r"oplet .*--delegate xla:device=gpu\b": "a GPU; plugins/xla_delegate/tests/test_page.py runs the page on the CPU",
    r"oplet chat model\.litertlm|oplet (inspect|doctor) \S+\.(litertlm|task)\b": "a bundle that a reader has; plugins/lm/tests make some, and call these",
    r"oplet doctor reviews\.tflite": "the model that docs/text-classifier.md makes, in tests/pages/test_text_classifier.py",
    r"oplet .*--delegate fast\b|oplet new-delegate fast": "the delegate that docs/writing-a-delegate.md makes, in tests/pages/test_writing_a_delegate.py",
}

#: README's summary of the command, as commands.
SUMMARY = {
    "run": (
        "oplet run model.tflite --input photo.png --output probabilities.npy --top 3 --labels labels.txt",
        "oplet run model.tflite --input image=photo.png --delegate example",
        "oplet run model.tflite --input . --output results.csv --workers 2 --preprocess resize=crop --resume || test $? = 3",
    ),
    "behind": ("oplet behind program.py", "oplet behind -m program"),
    "doctor": ("oplet doctor model.tflite", "oplet doctor model.tflite --json"),
    "inspect": (
        "oplet inspect model.tflite",
        "oplet inspect model.tflite --json",
        "oplet inspect model.tflite --nodes --tensors --op CONV_2D",
        "oplet inspect model.tflite --tensor 17",
    ),
    "partition": ("oplet partition model.tflite --delegate example --json",),
    "explore": ("oplet explore model.tflite --delegate example --times -o model.html",),
    "compare": ("oplet compare model.tflite --delegate example --layers",),
    "benchmark": (
        "oplet benchmark model.tflite --num-threads 2 --json",
        "oplet benchmark model.tflite --profile-html profile.html --trace trace.json",
        "oplet benchmark model.tflite --compare litert",
        "oplet benchmark model.tflite --roofline --json > base.json && oplet benchmark model.tflite --against base.json",
    ),
    "tune": ("oplet tune model.tflite --num-threads 1 --json",),
    "versions": ("oplet versions model.tflite --nodes", "oplet versions model.tflite --against 2.16.1 --json"),
    "rewrite": (
        "oplet rewrite model.tflite -o stripped.tflite --strip",
        "oplet rewrite model.tflite -o two.tflite --batch 2 --metadata note=labels.txt",
    ),
    "select": (
        "oplet select model.tflite -o resolver.py --lock oplet.lock.json",
        "oplet select model.tflite --check oplet.lock.json",
    ),
    "build": (
        "oplet build model.tflite --name my_ops --types -o dist/ --no-timing",
        "oplet build model.tflite --name my_app --with-core --with-model -o dist/ --no-timing",
        "oplet build model.tflite --name my_app --with-model -o app.pyz",
        "python app.pyz --input photo.png",
    ),
    "plugins": ("oplet plugins", "oplet plugins --json"),
    "new-op": ("oplet new-op Fresh --directory fresh", "oplet new-op ATAN2 --directory atan2 --builtin"),
    "new-delegate": ("oplet new-delegate fresh --directory fresh_delegate",),
}
#: What needs a package besides oplet-builtin-ops.
NEEDS_MORE = re.compile(r"--delegate (example|litert|openvino|xla)\b|--compare litert|--custom-op-library|oplet native\b")
PROGRAM = """
from ai_edge_litert.interpreter import Interpreter

interpreter = Interpreter("model.tflite")
interpreter.allocate_tensors()
interpreter.invoke()
"""


def documented(page: Path) -> list[str]:
    """The commands in a page's code: blocks that are indented, and those marked sh."""
    lines, fence = [], ""
    for line in page.read_text().splitlines():
        if line.startswith("```"):
            fence = "" if fence else line[3:].strip() or "text"
        elif fence == "sh":
            lines.append(line)
        elif not fence and line.startswith("    "):
            lines.append(line[4:])
    texts = (re.sub(r"\s{2,}# .*", "", line).strip() for line in lines if not line.startswith(" "))
    return [text for text in texts if COMMAND.match(text.removeprefix("! ")) and "->" not in text]


def runnable(page: Path) -> list[str]:
    found: list[str] = []
    for command in documented(page):
        if any(re.match(pattern, command) for pattern in NOT_RUN):
            continue
        if summary := re.match(r"oplet ([\w-]+)(?: [\[\]\w.-]+)* (?:MODEL|NAME|\[--json\]|\[ARGS\])|oplet (plugins) ", command):
            found += SUMMARY[summary[1] or summary[2]]
        else:
            found.append(command)
    return list(dict.fromkeys(found))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of the names that the pages use."""
    digits = ROOT / "examples" / "digits"
    for name in ("model", "detector", "classifier", "new_detector", "mobilenet"):
        quantized = "float" if name == "classifier" else "int8"
        [source] = digits.glob(f"digits_{quantized}*.tflite")
        shutil.copy(source, tmp_path / f"{name}.tflite")
    for name in ("photo.png", "cat.png"):
        shutil.copy(digits / "pictures" / "7.png", tmp_path / name)
    shutil.copy(digits / "labels.txt", tmp_path)
    shutil.copy(ROOT / "examples" / "atan" / "atan.tflite", tmp_path)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / "my_app").mkdir()
    (tmp_path / "program.py").write_text(PROGRAM)
    np.save(tmp_path / "x.npy", np.linspace(0, 1, 64, dtype=np.float32).reshape(1, 8, 8, 1))
    saved = [sys.executable, "-m", "oplet", "run", "model.tflite", "-i", "x.npy", "-o", "expected.npz", "--quiet"]
    run_child(saved, cwd=tmp_path, text=False)
    return tmp_path


def compile_atan(library: Path) -> None:
    """Compile the operator that the pages call libatan.so."""
    compiler = shutil.which("c++") or pytest.skip("no C++ compiler is here")
    from oplet_native_ops import cflags

    source = ROOT / "plugins" / "native_ops" / "tests" / "sources" / "atan_operator.cc"
    run_child([compiler, "-shared", *cflags(), "-o", library, source], text=False)


def run_all(commands: list[str], folder: Path, **environment: str) -> None:
    beside = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    known = {**os.environ, "PATH": beside, "XDG_CACHE_HOME": str(folder / "cache"), "COLUMNS": "200", **environment}
    known.pop("OPLET_PREFER", None)
    for command in commands:
        ran = subprocess.run(command, shell=True, cwd=folder, env=known, capture_output=True, text=True, timeout=600)
        told = f"{command}\n{ran.stdout[-1500:]}\n{ran.stderr[-1500:]}"
        compared_with_itself = ran.returncode == 3 and command.startswith("oplet compare")
        assert ran.returncode == 0 or (compared_with_itself and "the model was compared with itself" in ran.stdout), told
        assert "Traceback" not in ran.stdout + ran.stderr, told
        assert "please report it" not in ran.stdout + ran.stderr, told


def test_every_command_of_the_summary_is_known() -> None:
    named = re.findall(r"^    oplet ([\w-]+)", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert len(named) > 10
    assert set(named) <= set(SUMMARY)


def test_commands_are_found_where_there_are_some() -> None:
    docs = ROOT / "docs"
    assert "oplet tune model.tflite --num-threads 2" in runnable(docs / "choosing-an-engine.md")
    assert any(command.startswith("oplet build mobilenet") for command in runnable(docs / "selective-builds.md"))
    assert set(SUMMARY["build"]) <= set(runnable(ROOT / "README.md"))


def test_nothing_is_left_out_for_a_reason_that_is_gone() -> None:
    commands = [command for page in PAGES for command in documented(page)]
    idle = [pattern for pattern in NOT_RUN if not any(re.match(pattern, command) for command in commands)]
    assert idle == []


def with_commands() -> list[Path]:
    return [page for page in PAGES if runnable(page)]


@pytest.mark.sweep
@pytest.mark.parametrize("page", with_commands(), ids=lambda page: f"{page.parent.name}/{page.name}")
def test_documented_commands_run_with_every_package_installed(page: Path, folder: Path) -> None:
    absent = []
    for package in PACKAGES:
        try:
            version(package)
        except PackageNotFoundError:
            absent.append(package)
    if absent:
        pytest.skip(f"not installed: {', '.join(absent)}")
    if "libatan.so" in page.read_text():
        compile_atan(folder / "libatan.so")
    run_all(runnable(page), folder)


@pytest.mark.sweep
@pytest.mark.parametrize("page", with_commands(), ids=lambda page: f"{page.parent.name}/{page.name}")
def test_documented_commands_run_with_the_numpy_kernels_alone(page: Path, folder: Path) -> None:
    run_all(
        [command for command in runnable(page) if not NEEDS_MORE.search(command)],
        folder,
        OPLET_PLUGINS="oplet-builtin-ops,oplet-build",
    )


@pytest.mark.sweep
def test_the_demo_runs_with_the_numpy_kernels_alone_and_with_all_that_is_installed_here(tmp_path: Path) -> None:
    demo = ["sh", str(ROOT / "scripts" / "demo.sh")]
    known = {name: value for name, value in os.environ.items() if not name.startswith("OPLET_")}
    known |= {"OPLET_VENV": str(tmp_path / "venv"), "PYTHON": sys.executable, "COLUMNS": "200"}
    for others in (False, True):
        if others:
            [site] = (tmp_path / "venv").glob("lib/python*/site-packages")
            folders = [folder for folder in sys.path if Path(folder).name == "site-packages"]
            (site / "zz_others.pth").write_text("".join(f"import site; site.addsitedir({folder!r})\n" for folder in folders))
        ran = subprocess.run(demo, env=known, cwd=tmp_path, capture_output=True, text=True, timeout=900)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert "Traceback" not in ran.stderr
        assert ran.stdout.split("probabilities: the highest")[1].splitlines()[3].split()[0] == "seven"
