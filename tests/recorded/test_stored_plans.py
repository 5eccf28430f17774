"""Every recorded model whose nodes have compiled kernels gives the same bits, or the same error, from a plan on disk in another process."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kinds import part
from tests.lifecycle import stored_answers
from tests.machine_code import need_stored_plans
from tests.recorded_cases import GROUPS, chosen, here

from oplet.runtime.memory import remembered
from oplet.runtime.memory.remembered import STORE_VARIABLE

need_stored_plans()

#: Fewer than have plans; and how many models are opened in one child.
_LEAST, _BATCH = 1500, 300


@here
@pytest.mark.sweep(cases=True)
def test_another_process_gives_the_same_bits_from_plans(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(STORE_VARIABLE, "")
    monkeypatch.setenv("OPLET_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))  # another has plans of its own
    monkeypatch.setattr(stored_answers.plan_files, "_ALL_FILES", 1 << 30)
    monkeypatch.setattr(stored_answers.plan_files, "_ALL_BYTES", 1 << 50)
    restored = 0
    wrong = []
    for models in _batches():
        expected = {model: found for model in models if (found := stored_answers.keep(model)) is not None}
        remembered.forget_plans()
        gc.collect()
        child = subprocess.run(
            [sys.executable, stored_answers.__file__],
            input=json.dumps(list(expected)),
            capture_output=True,
            text=True,
        )
        assert child.returncode == 0, (models[0], child.stderr[-2000:])
        for (model, answers), found in zip(expected.items(), json.loads(child.stdout)):
            if found is not None:
                restored += 1
                if found != answers:
                    wrong.append((model, answers, found))
        for plan in tmp_path.rglob("*.plan"):
            plan.unlink()
    assert not wrong
    assert restored >= part().least(_LEAST)


def _batches() -> Iterator[list[tuple[str, str]]]:
    """The recorded models of this part, each with its archive, some hundreds at a time."""
    models = [(str(case.path), f"{case.name}/model.tflite") for case in chosen(*GROUPS)]
    for start in range(0, len(models), _BATCH):
        yield models[start : start + _BATCH]
