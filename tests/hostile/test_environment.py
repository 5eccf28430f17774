"""Whatever the environment holds, a program answers, or says by an error of oplet's what is wrong: values that are no names, numbers or
folders of the user's, and processes that lack what most have.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.children import run_child
from tests.places import ROOT

pytestmark = [pytest.mark.skipif(os.name == "nt", reason="pipes, links and devices are POSIX's"), pytest.mark.sweep]

PROGRAM = f"""
import sys
import numpy as np
import oplet, oplet.errors

def answer():
    interpreter = oplet.Interpreter({str(ROOT / "examples" / "digits" / "digits_float32.tflite")!r}, num_threads=2)
    interpreter.allocate_tensors()
    [given], [found] = interpreter.get_input_details(), interpreter.get_output_details()
    for _ in range(2):
        interpreter.set_tensor(given["index"], np.ones(given["shape"], np.float32))
        interpreter.invoke()
    return interpreter.get_tensor(found["index"]).argmax()

if __name__ == "__main__":
    try:
        told = answer()
    except oplet.errors.OpletError as error:
        told = type(error).__name__
    if sys.stdout is not None:
        print(told)
"""
#: Values that name no plugin, level, number or switch; the last is longer than any message.
TEXTS = (
    "", "off", "-1", "0", "1e999", "nan", "\n", "no:", "no:no:", "=,=", "a=", "=b", "*", ",,", "../x", "'", b"\xff\xfe", "a" * 100_000,
)  # fmt: skip
NAMED = ("OPLET_PLUGINS", "OPLET_DISABLE_PLUGINS", "OPLET_PREFER", "OPLET_PLANS", "OPLET_COMPILED_LEVEL", "OPLET_LITERT_SHIM")
COUNTED = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
FOLDERS = ("OPLET_CACHE_DIR", "XDG_CACHE_HOME", "HOME")
#: Folders that are none of the user's, by what `places` makes of them.
PLACES = ("fifo", "foreign", "link", "loop", "file", "closed", "/dev/zero", "/dev/full", "/proc/self", "relative", "..", "-", " ", "~",
          "/" + "x" * 5000, "/" + "y/" * 3000, "/no/such", "a\nline", b"/\xff\xfe")  # fmt: skip


@pytest.fixture
def places(tmp_path: Path) -> Iterator[Path]:
    os.mkfifo(tmp_path / "fifo")
    for name in ("foreign", "closed", "work"):
        (tmp_path / name).mkdir()
    (tmp_path / "foreign").chmod(0o777)
    (tmp_path / "closed").chmod(0)
    (tmp_path / "link").symlink_to("foreign")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").write_bytes(b"x")
    yield tmp_path
    (tmp_path / "closed").chmod(0o700)


def answers(folder: Path, *flags: str, program: str = PROGRAM, **variables: object) -> list[str]:
    """Run the program in the folder `work`, which must stay empty; return what it writes."""
    environment = {**os.environ, "HOME": str(folder), "PYTHONPATH": "", **variables}
    done = run_child([sys.executable, *flags, "-c", program], cwd=folder / "work", env=environment, stdin=-3)
    assert len(done.stderr) < 20_000
    assert "Traceback" not in done.stderr
    return str(done.stdout).split()


@pytest.mark.parametrize("value", TEXTS, ids=lambda value: ascii(value)[:20])
@pytest.mark.parametrize("name", [*NAMED, *COUNTED])
def test_values_that_are_none_of_a_variable_s_are_told_or_left_alone(name: str, value: str | bytes, places: Path) -> None:
    told = answers(places, **{name: value})
    assert told in (["1"], ["PluginError"], ["OpNotFoundError"]), told
    assert told == ["1"] or name in ("OPLET_PLUGINS", "OPLET_PREFER")


@pytest.mark.parametrize("value", PLACES, ids=lambda value: ascii(value)[:20])
@pytest.mark.parametrize("name", FOLDERS)
def test_folders_that_are_none_of_the_user_s_are_left_alone(name: str, value: str | bytes, places: Path) -> None:
    own = str(places / value) if isinstance(value, str) and (places / value[:200]).exists() else value
    assert answers(places, **{name: own}) == ["1"]
    assert not list((places / "foreign").iterdir())


@pytest.mark.parametrize(
    "flags",
    ["-I", "-O", "-OO", "-W error", "-X dev", "-X dev -W error", "-bb -W error", "-B -s", "-X utf8=0", "-X frozen_modules=off"],
)
def test_python_s_own_switches_change_no_answer(flags: str, places: Path) -> None:
    assert answers(places, *flags.split()) == ["1"]


@pytest.mark.parametrize(
    "before",
    [
        "os.cpu_count = lambda: None",
        "os.cpu_count = lambda: None; del os.sched_getaffinity",
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})",
        "os.environ.clear()",
        "os.close(0)",
        "os.close(2)",
        "sys.stdout = sys.stderr = sys.stdin = None",
        "import tempfile; gone = tempfile.mkdtemp(); os.chdir(gone); os.rmdir(gone)",
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))",
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))",
    ],
)
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="affinity and limits are Linux's here")
def test_what_a_process_lacks_changes_no_answer(before: str, places: Path) -> None:
    assert answers(places, program=f"import os, sys\n{before}\n{PROGRAM}") in (["1"], [])


def test_processes_that_are_forked_while_threads_run_answer_alike(places: Path) -> None:
    forking = """
import os, threading
from queue import SimpleQueue

expected, ends = answer(), SimpleQueue()

def work():
    while ends.empty():
        assert answer() == expected

threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
statuses = []
for _ in range(8):
    child = os.fork()
    if not child:
        grandchild = os.fork()
        status = os.waitpid(grandchild, 0)[1] if grandchild else 0
        os._exit(int(status != 0 or answer() != expected))
    statuses.append(os.waitpid(child, 0)[1])
ends.put(None)
for thread in threads:
    thread.join()
assert not any(statuses), statuses
print(expected)
"""
    assert answers(places, program=PROGRAM.partition("if __name__")[0] + forking) == ["1"]
