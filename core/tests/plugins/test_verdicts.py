"""`doctor` and `inspect` say what plugins do with the nodes of a model, not what they registered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from oplet import TensorType
from oplet_testing import Spec, one_op_model
from oplet_tools.describing.doctor import examine
from oplet_tools.describing.inspect import inspect_model

DRAFT = """
    from oplet import Registration, decline, hookimpl

    def prepare(context, node):
        decline("it is a draft")

    @hookimpl
    def register_ops(resolver):
        resolver.add_custom("Draft", Registration(prepare=prepare, invoke=print))
    """


def one_node(folder: Path, op: str) -> Path:
    path = folder / "model.tflite"
    path.write_bytes(one_op_model(op, [Spec(TensorType.FLOAT32, [3])], [Spec(TensorType.FLOAT32, [3])]))
    return path


def test_a_package_that_declines_every_node_serves_none(site: Any, tmp_path: Path) -> None:
    site.add("oplet-draft", source=DRAFT)
    path = one_node(tmp_path, "Draft")
    [found] = examine(path, site.manager()).operators
    assert not found.is_served
    assert "oplet-draft 1.0 declines it: it is a draft" in found.fix
    [op] = inspect_model(path, site.manager())["ops"]
    assert "oplet-draft 1.0 declines it: it is a draft" in op["advice"]


def test_inspect_names_the_package_that_serves_where_the_first_one_declines(site: Any, tmp_path: Path) -> None:
    site.add("oplet-draft", source=DRAFT.replace("add_custom", "add_builtin").replace('"Draft"', '"RELU"'))
    site.add_op("oplet-builtin-ops", op="RELU", head='OPLET_TIER = "builtin"')
    [op] = inspect_model(one_node(tmp_path, "RELU"), site.manager())["ops"]
    assert (op["distribution"], op["advice"]) == ("oplet-builtin-ops", "")
    assert op["why"] == "oplet-draft 1.0 declined it: it is a draft"


def test_two_packages_that_claim_an_op_are_told_in_its_row(site: Any, tmp_path: Path) -> None:
    for name in ("oplet-one", "oplet-two"):
        site.add_op(name, op="Both")
    [found] = examine(one_node(tmp_path, "Both"), site.manager()).operators
    assert not found.is_served
    assert "is claimed by oplet-one 1.0 and oplet-two 1.0" in found.fix
