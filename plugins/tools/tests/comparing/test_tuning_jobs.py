"""The job of a child process that measures for "auto": an interpreter's settings as JSON."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from oplet import Interpreter, OpResolverType
from oplet.schema.options import FullyConnectedOptions
from oplet.toolkit import Preference, default_manager
from oplet_testing import one_op_model
from oplet_testing.one_op import Spec
from oplet_tools.tuning.child.job import Job, job_of
from oplet_tools.tuning.choice import settings_in_key


@pytest.mark.parametrize("kind", list(OpResolverType))
def test_the_resolver_type_reaches_the_child_and_the_key_of_the_choice(kind: OpResolverType, tmp_path: Path) -> None:
    weights = Spec("int8", [2, 3], [0.1], [0], data=np.arange(6))
    specs = [Spec("float32", [1, 3]), weights], [Spec("float32", [1, 2])]
    path = tmp_path / "layer.tflite"
    path.write_bytes(one_op_model("FULLY_CONNECTED", *specs, FullyConnectedOptions(), version=9))
    manager = default_manager()
    made = partial(Interpreter, str(path), None, num_threads=1, experimental_op_resolver_type=kind)
    job = job_of(made, manager, Preference())
    assert isinstance(job, Job), job
    opened = Job.from_json(json.loads(json.dumps(job.to_json()))).open(manager, str(path), (), ())
    why = Interpreter(str(path), experimental_op_resolver_type=kind).explain()[0].why
    assert opened.explain()[0].why == why
    assert bool(settings_in_key(made.keywords, Preference())) is (kind is not OpResolverType.AUTO)
