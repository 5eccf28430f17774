"""Machine code on disk, in memory, and from other processes."""

from __future__ import annotations

import base64
import os
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oplet_compiled_ops.library.compiler import machine_code
from oplet_compiled_ops.library.machine_code import memory, storage
from oplet_compiled_ops.library.machine_code.image import Image, ImageError, linked
from oplet_compiled_ops.library.machine_code.objects import loaded_object
from tests.children import run_child

from oplet import Interpreter
from oplet.runtime.memory.remembered import forget_plans
from oplet_compiled_ops.library import background, kernels, processes, worker
from oplet_compiled_ops.library.kernels import ENTRIES, IMAGE, OBJECT, CompileError, Entry, Kernel
from oplet_compiled_ops.library.lazy import inlined
from oplet_compiled_ops.shaping.copying import COPY
from oplet_testing import Spec, one_op_model

_inlined: Any = inlined(error_model="numpy")


@_inlined
def _doubled(value):  # type: ignore[no-untyped-def]
    return value + value


def _double(values, results, plus):  # type: ignore[no-untyped-def]
    for i in range(values.size):
        results[i] = _doubled(values[i]) + plus


def _allocating(values):  # type: ignore[no-untyped-def]
    values[:] = np.zeros(values.size)[:1]


SIGNATURE = "void(f4[::1], f4[::1], f4)"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of machine code."""
    monkeypatch.setenv("OPLET_CACHE_DIR", str(tmp_path))
    return tmp_path / "kernels"


def doubles(entry: Entry) -> bool:
    values, results = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
    entry.function()(values, results, 1.0)
    return results.tolist() == [1, 3, 5, 7, 9]


def test_machine_code_is_stored_and_loaded_without_compiling(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert doubles(Kernel(_double, SIGNATURE).entry())
    [path] = folder.glob("double-*.code")
    monkeypatch.setattr(Kernel, "made", lambda self: pytest.fail("it was compiled"))
    again = Kernel(_double, SIGNATURE)
    assert again.load()
    assert doubles(again.entry())
    assert path.stat().st_mode & 0o400


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "garbage"])
def test_damaged_files_are_compiled_anew(folder: Path, damage: str) -> None:
    Kernel(_double, SIGNATURE).entry()
    [path] = folder.glob("double-*.code")
    whole = path.read_bytes()
    path.write_bytes(
        {"cut": whole[:-9], "changed": whole[:-1] + bytes([whole[-1] ^ 1]), "empty": b"", "garbage": b"x" * 99}[damage]
    )
    again = Kernel(_double, SIGNATURE)
    assert not again.load()
    assert doubles(again.entry())
    assert path.read_bytes() == whole


def test_the_newest_kernels_stay_on_disk(folder: Path) -> None:
    for number in range(5):
        assert storage.store(f"depthwise-{number}", b"x", 9)
        os.utime(folder / f"depthwise-{number}.code", (number, number))
    assert storage.store("product-1", b"x", 2)
    assert storage.store("depthwise-9", b"x", 3)
    assert {path.name for path in folder.iterdir()} == {
        "depthwise-3.code", "depthwise-4.code", "depthwise-9.code", "product-1.code",
    }  # fmt: skip


def test_kernels_are_compiled_where_no_folder_can_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("OPLET_CACHE_DIR", str(file))
    assert not storage.store("depthwise-1", b"x", 9)
    assert doubles(Kernel(_double, SIGNATURE).entry())


def object_file() -> bytes:
    """An object file of `_double`."""
    with pytest.MonkeyPatch.context() as patch:
        from oplet_compiled_ops.library import compiler

        def refuse(data: bytes, entries: Any) -> Image:
            raise ImageError("not today")

        patch.setattr(compiler, "linked", refuse)
        content = machine_code(Kernel(_double, SIGNATURE))
    assert content[:1] == OBJECT
    return content[1:]


def test_object_files_run_where_images_cannot_be_made() -> None:
    assert doubles(Entry(loaded_object(object_file(), ENTRIES), SIGNATURE))


@pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="images are for Linux on x86-64")
class TestImages:
    def test_kernels_of_this_machine_become_images(self) -> None:
        content = machine_code(Kernel(_double, SIGNATURE))
        assert content[:1] == IMAGE
        image = Image.from_bytes(content[1:])
        assert Image.from_bytes(image.to_bytes()) == image
        assert doubles(Entry(memory.loaded(image), SIGNATURE))

    def test_an_image_of_a_damaged_object_is_refused_or_like_the_whole_one(self) -> None:
        data = object_file()
        for size in range(0, len(data), 97):
            with pytest.raises((ImageError, struct.error, ValueError, IndexError)):
                linked(data[:size], ENTRIES)

    def test_offsets_outside_an_image_are_refused(self) -> None:
        image = Image.from_bytes(machine_code(Kernel(_double, SIGNATURE))[1:])
        for wrong in (
            Image(image.code, {"enter": len(image.code)}),
            Image(image.code, {"enter": -1}),
            Image(image.code, image.entries, [len(image.code) - 7]),
            Image(image.code, image.entries, [], {"memset": [len(image.code) - 1]}),
        ):
            with pytest.raises(ImageError, match="outside"):
                Image.from_bytes(wrong.to_bytes())

    def test_memory_that_cannot_be_executable_is_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Denied:
            @staticmethod
            def mprotect(*arguments: Any) -> int:
                return -1

        image = Image.from_bytes(machine_code(Kernel(_double, SIGNATURE))[1:])
        monkeypatch.setattr(memory, "CLibrary", Denied)
        with pytest.raises(ImageError, match="executable"):
            memory.loaded(image)

    def test_functions_that_the_c_library_lacks_are_told(self) -> None:
        with pytest.raises(ImageError, match="no_such_function"):
            memory.loaded(Image(bytes(64), {"enter": 0}, [], {"no_such_function": [0]}))


def test_a_kernel_that_allocates_is_refused(folder: Path) -> None:
    kernel = Kernel(_allocating, "void(f8[::1])")
    with pytest.raises(CompileError):
        kernel.entry()
    with pytest.raises(CompileError):  # again, without compiling
        kernel.entry()


MODEL = one_op_model("LOGISTIC", [Spec("float32", (4, 5000))], [Spec("float32", (4, 5000))])


class Compiled:
    """A model whose kernels are on no disk."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
        monkeypatch.setenv(background.VARIABLE, mode)
        for kernel in list(kernels.known):
            monkeypatch.setattr(kernel, "_entry", None)
            monkeypatch.setattr(kernel, "_looked_for", False)
        forget_plans()  # interpreters of equal bytes take over what others have bound
        self.interpreter = Interpreter(model_content=MODEL)
        self.interpreter.allocate_tensors()
        [detail] = self.interpreter.get_input_details()
        self.input = detail["index"]
        self.output = self.interpreter.get_output_details()[0]["index"]

    def run(self) -> Any:
        self.interpreter.set_tensor(self.input, np.linspace(-9, 9, 20000, dtype=np.float32).reshape(4, 5000))
        self.interpreter.invoke()
        return self.interpreter.get_tensor(self.output)

    @property
    def kernel(self) -> str:
        return type(self.interpreter._subgraphs[0].segments[0].thunks[0]).__name__


@pytest.mark.sweep
def test_numpy_answers_until_another_process_has_compiled(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Compiled(monkeypatch, "background")
    assert model.kernel == "_ForNow"
    first = model.run()
    progress: list[tuple[int, int]] = []
    model.interpreter.warm_up(lambda done, total: progress.append((done, total)))
    assert progress == [(0, 1), (1, 1)]
    assert model.kernel != "_ForNow"
    np.testing.assert_allclose(model.run(), first, rtol=1e-6)
    assert list(folder.glob("LOGISTIC-*.code"))
    model.interpreter.warm_up(lambda done, total: pytest.fail("there is nothing to wait for"))


@pytest.mark.sweep
def test_a_plan_that_is_taken_over_gets_its_compiled_kernels(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Compiled(monkeypatch, "background")
    content = bytes(bytearray(MODEL))

    def opened() -> Interpreter:
        interpreter = Interpreter(model_content=content)
        interpreter.allocate_tensors()
        return interpreter

    model.interpreter = opened()
    model.run()
    model.interpreter = None  # type: ignore[assignment]
    model.interpreter = opened()
    assert model.kernel == "_ForNow"
    first = model.run()
    model.interpreter.warm_up()
    assert model.kernel != "_ForNow"
    np.testing.assert_allclose(model.run(), first, rtol=1e-6)


@pytest.mark.sweep
def test_a_compiler_that_crashes_leaves_the_node_to_numpy(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_START", "import os; os.abort()")
    monkeypatch.setattr(processes, "_of_this_process", [])
    for kernel in list(kernels.known):
        monkeypatch.setattr(kernel, "_error", "")
    model = Compiled(monkeypatch, "background")
    first = model.run()
    model.interpreter.warm_up()
    assert model.kernel == "_ForNow"
    assert (model.run() == first).all()


def test_kernels_that_are_not_on_disk_are_left_to_numpy_where_none_may_be_compiled(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Compiled(monkeypatch, "never")
    assert "never" in str(model.interpreter.explain())
    model.run()


def test_nonsense_in_the_variable_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(background.VARIABLE, "nonsense")
    with pytest.raises(CompileError, match="'nonsense', which is none of background, first, never"):
        background.mode()


CODE = """
import pathlib, sys
from oplet import Interpreter
interpreter = Interpreter(model_content=pathlib.Path(sys.argv[1]).read_bytes())
interpreter.allocate_tensors()
interpreter.invoke()
print(type(interpreter._subgraphs[0].segments[0].thunks[0]).__name__, "numba" in sys.modules, "llvmlite" in sys.modules)
"""


def test_a_process_with_machine_code_on_disk_imports_no_compiler(tmp_path: Path) -> None:
    model = tmp_path / "model.tflite"
    model.write_bytes(MODEL)
    environment = {**os.environ, "OPLET_CACHE_DIR": str(tmp_path)}
    said = [run_child([sys.executable, "-c", CODE, str(model)], env=environment).stdout for _ in range(2)]
    assert said[0].split()[1:] == ["True", "True"]
    assert said[1].split() == ["_Call", "False", "False"]


SHORT = """
import pathlib, sys
from oplet import Interpreter
interpreter = Interpreter(model_content=pathlib.Path(sys.argv[1]).read_bytes())
interpreter.allocate_tensors()
interpreter.invoke()
"""


HOLDING = """
import sys
from oplet_compiled_ops.library.machine_code.storage import alone
with alone(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_processes_wait_for_each_other_where_they_make_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "_PATIENCE", 0.2)
    folder.mkdir(mode=0o700)
    with (
        subprocess.Popen([sys.executable, "-c", HOLDING, "one-1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other,
        (folder / "being-made").open("ab") as file,
    ):
        assert other.stdout is not None
        assert other.stdin is not None
        assert other.stdout.readline() == b"held\n"
        assert not storage._locked(file, storage._byte_of("one-1"))
        with storage.alone("one-2"), storage.alone("one-1"):  # another kernel; and no longer than its patience
            pass
        other.stdin.close()
        other.wait()
        assert storage._locked(file, storage._byte_of("one-1"))


def test_a_compiler_takes_what_another_process_made_meanwhile(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = {"module": COPY.function.__module__, "family": COPY.family, "name": COPY.name}
    assert storage.store(COPY.name, b"machine code", 9)
    monkeypatch.setattr(Kernel, "made", lambda kernel: pytest.fail("it is compiled twice"))
    assert base64.b64decode(worker._answer(request)["code"]) == b"machine code"


@pytest.mark.sweep
def test_what_a_process_leaves_at_its_end_is_compiled_for_the_next_one(tmp_path: Path) -> None:
    model = tmp_path / "model.tflite"
    model.write_bytes(MODEL)
    environment = {**os.environ, "OPLET_CACHE_DIR": str(tmp_path), background.VARIABLE: "background"}
    run_child([sys.executable, "-c", SHORT, str(model)], env=environment)
    for _ in range(6000):  # ten minutes, on a busy machine
        if list((tmp_path / "kernels").glob("LOGISTIC-*.code")):
            break
        time.sleep(0.1)
    said = run_child([sys.executable, "-c", CODE, str(model)], env=environment)
    assert said.stdout.split()[1:] == ["False", "False"]
