"""A model saves what it has learnt, and restores it, in the folder that the program names, and nowhere else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plugins.flex_ops.tests.nodedefs import flex_options

from oplet import Interpreter, ModelBuilder, PluginManager, TensorType, load_delegate
from oplet.errors import InvokeError, OpletError, TensorError, UnresolvedOpError
from oplet.schema.options import AddOptions, VarHandleOptions
from oplet_flex_delegate.guards.checkpoints import path_inside
from oplet_tools.describing.doctor import examine

F32, TEXT, RESOURCE = TensorType.FLOAT32, TensorType.STRING, TensorType.RESOURCE


def learner(version: str = "") -> bytes:
    """A model of one variable of three floats, with the signatures set, add, get, save and restore.

    Args:
        version: "V2" for the operators of TensorFlow 2's checkpoints.
    """
    builder = ModelBuilder(minimum_runtime=False)
    signatures: list[tuple[str, dict[str, int], dict[str, int]]] = []

    def graph(key: str, given: str = "") -> tuple[Any, int, int]:
        made = builder.add_subgraph(key)
        handle = made.add_tensor("handle", RESOURCE, [])
        made.add_operator("VAR_HANDLE", [], [handle], VarHandleOptions(container="", shared_name="weights"))
        source = made.add_tensor(given, TEXT if given == "path" else F32, [] if given == "path" else [3]) if given else -1
        made.set_inputs(*[source] if given else [])
        signatures.append((key, {given: source} if given else {}, {}))
        return made, handle, source

    def read(made: Any, handle: int) -> int:
        value = made.add_tensor("value", F32, [3])
        made.add_operator("READ_VARIABLE", [handle], [value])
        return int(value)

    made, handle, x = graph("set", "x")
    made.add_operator("ASSIGN_VARIABLE", [handle, x], [])
    made.set_outputs()
    made, handle, x = graph("add", "x")
    total = made.add_tensor("total", F32, [3])
    made.add_operator("ADD", [read(made, handle), x], [total], AddOptions())
    made.add_operator("ASSIGN_VARIABLE", [handle, total], [])
    made.set_outputs(total)
    signatures[-1][2]["total"] = total
    made, handle, _ = graph("get")
    value = read(made, handle)
    made.set_outputs(value)
    signatures[-1][2]["value"] = value
    for key in ("save", "restore"):
        made, handle, path = graph(key, "path")
        names = np.array([b"weights"] if version or key == "save" else b"weights", object)
        name = made.add_tensor("names", TEXT, names.shape, data=names)
        slices = [made.add_tensor("slices", TEXT, [1], data=np.array([b""], object))] if version else []
        if key == "save":
            attributes = {"dtypes": [F32]} if version else {"T": [F32]}
            options = flex_options(f"Save{version}", attributes)
            made.add_operator(
                f"FlexSave{version}", [path, name, *slices, read(made, handle)], [], custom=True, custom_options=options
            )
        else:
            restored = made.add_tensor("restored", F32, [3])
            attributes = {"dtypes": [F32]} if version else {"dt": F32}
            options = flex_options(f"Restore{version}", attributes)
            made.add_operator(f"FlexRestore{version}", [path, name, *slices], [restored], custom=True, custom_options=options)
            made.add_operator("ASSIGN_VARIABLE", [handle, restored], [])
        made.set_outputs()
    for key, inputs, outputs in signatures:
        builder.add_signature(key, inputs, outputs, subgraph=[each[0] for each in signatures].index(key))
    return builder.to_bytes()


def call(interpreter: Interpreter, key: str, **inputs: Any) -> dict[str, Any]:
    given = {name: np.array(value, object if name == "path" else np.float32) for name, value in inputs.items()}
    return interpreter.get_signature_runner(key)(**given)


def taught(interpreter: Interpreter) -> Interpreter:
    call(interpreter, "set", x=[1, 2, 3])
    call(interpreter, "add", x=[10, 10, 10])
    return interpreter


@pytest.mark.parametrize("version", ["", "V2"])
@pytest.mark.parametrize("by", ["argument", "option"])
@pytest.mark.parametrize("absolute", [False, True])
def test_what_was_learnt_is_there_after_a_restart(tmp_path: Path, version: str, by: str, absolute: bool) -> None:
    pytest.importorskip("tensorflow")
    content, name = learner(version), b"mine.ckpt"
    if absolute:
        name = os.fsencode(tmp_path / "mine.ckpt")

    def opened() -> Interpreter:
        if by == "argument":
            return Interpreter(model_content=content, checkpoint_folder=tmp_path)
        return Interpreter(model_content=content, experimental_delegates=[load_delegate("flex", {"folder": str(tmp_path)})])

    call(taught(opened()), "save", path=name)
    assert [path for path in tmp_path.iterdir() if path.name.startswith("mine.ckpt")]
    again = opened()
    call(again, "restore", path=name)
    assert call(again, "get")["value"].tolist() == [11, 12, 13]


@pytest.mark.parametrize("version", ["", "V2"])
def test_without_a_folder_nothing_is_saved_or_restored(tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    content = learner(version)
    path = tmp_path / "m.tflite"
    path.write_bytes(content)
    interpreter = taught(Interpreter(model_content=content))
    for key in ("save", "restore"):
        with pytest.raises(UnresolvedOpError, match=r"checkpoint_folder=FOLDER"):
            call(interpreter, key, path=b"mine.ckpt")
    assert [each.name for each in tmp_path.iterdir()] == ["m.tflite"]
    found = {each.op: each for each in examine(path, PluginManager()).operators}
    for op in (f"FlexSave{version}", f"FlexRestore{version}"):
        assert not found[op].is_served
        assert "a folder that you name" in found[op].fix
    assert call(interpreter, "get")["value"].tolist() == [11, 12, 13]


OUTSIDE = [
    b"../out", b"/tmp/out-of-the-folder", b"in/../../out", b"", b".", b"..", b"in/..", b"in/.", b"nowhere/x", b"a\0b", b"*", b"in/[ab]", b"x?",
    b"file:///tmp/x", b"gs://bucket/x", b"linked/x", b"link", b"lin", b"\\x",
]  # fmt: skip


@pytest.mark.parametrize("name", OUTSIDE)
def test_no_name_leads_out_of_the_folder(tmp_path: Path, name: bytes) -> None:
    folder = tmp_path / "folder"
    (folder / "in").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    (folder / "linked").symlink_to(tmp_path / "other")
    (folder / "link").symlink_to(tmp_path / "other" / "file")
    with pytest.raises(InvokeError):
        path_inside(str(folder), name)


def test_names_in_the_folder_are_paths_in_it(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "through").symlink_to(tmp_path / "in")
    for name, expected in (
        (b"x", "x"),
        (b"in/x", "in/x"),
        (b"in/../x", "x"),
        (b"through/x", "in/x"),
        (os.fsencode(tmp_path) + b"/x", "x"),
    ):
        assert path_inside(str(tmp_path), name) == os.path.realpath(tmp_path / expected)
    with pytest.raises(InvokeError, match="does not exist"):
        path_inside(str(tmp_path / "gone"), b"x")


def test_a_model_that_names_a_file_outside_is_refused_in_its_run(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow")
    (tmp_path / "folder").mkdir()
    interpreter = taught(Interpreter(model_content=learner(), checkpoint_folder=tmp_path / "folder"))
    for key in ("save", "restore"):
        with pytest.raises(OpletError, match="leads out of"):
            call(interpreter, key, path=b"../mine.ckpt")
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]


def test_variables_are_read_and_set_from_outside() -> None:
    content = learner()
    interpreter = Interpreter(model_content=content)
    assert interpreter.get_variables() == {}
    taught(interpreter)
    kept = interpreter.get_variables()
    assert {name: value.tolist() for name, value in kept.items()} == {"weights": [11, 12, 13]}
    kept["weights"] += 1  # a copy
    again = Interpreter(model_content=content)
    again.set_variables(kept)
    kept["weights"] += 1  # copied
    assert call(again, "get")["value"].tolist() == [12, 13, 14]
    assert call(again, "add", x=[1, 1, 1])["total"].tolist() == [13, 14, 15]
    assert call(interpreter, "get")["value"].tolist() == [11, 12, 13]
    for wrong, words in (
        ({"weights": np.zeros(2, np.float32)}, r"shape \[3\]; it is set to an array of float32 \[2\]"),
        ({"weights": np.zeros(3, np.int32)}, "float32"),
        ({"weights": np.zeros(3, np.float32), "heights": np.zeros(3)}, "has no variable 'heights'; it has 'weights'"),
    ):
        with pytest.raises(TensorError, match=words):
            again.set_variables(wrong)
    assert again.get_variables()["weights"].tolist() == [13, 14, 15]
