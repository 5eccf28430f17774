"""`experimental_delegates="auto"` and `oplet tune`: the fastest way whose answers are near enough, measured once."""

from __future__ import annotations

import json
import logging
import math
import os
import re

import numpy as np
import pytest
from plugins.tools.tests.comparing.own_clock import OWN_CLOCK

from oplet import Interpreter, ModelBuilder, PluginManager
from oplet.errors import DelegateLoadError, UnresolvedOpError
from oplet.model.files.cache_folder import FOLDER_VARIABLE
from oplet_testing.distributions import fake_distribution, installed
from oplet_tools.benchmarking.tune import tune_model
from oplet_tools.tuning.child.parent import ChildError
from oplet_tools.tuning.differences import largest_error, output_differences
from oplet_tools.tuning.tolerances import ModelKind

#: Options of a benchmark whose times do not matter.
QUICK = ("--num-runs", 3, "--min-secs", 0, "--warmup-min-secs", 0)

#: Custom op Slow, which doubles and takes its time, and an ADD that does so too.
OPS = f"""{OWN_CLOCK}
import numpy as np
from oplet import Registration, hookimpl

def prepare(context, node):
    context.resize_tensor(node.outputs[0], node.inputs[0].shape)

def slowly(compute):
    def invoke(context, node):
        time.sleep(0.006)
        compute(*[tensor.data for tensor in node.inputs], node.outputs[0].data)
    return Registration(prepare=prepare, invoke=invoke)

@hookimpl
def register_ops(resolver):
    resolver.add_custom("Slow", slowly(lambda x, out: np.add(x, x, out)))
    resolver.add_builtin("ADD", slowly(lambda x, y, out: np.add(x, y, out)), 1, 5)
"""

#: Delegates that run Slow: one well, one wrongly, one off by a last bit, one not at all, one with an error.
DELEGATES = """
import time
import numpy as np
from oplet import DelegateKernel, SimpleDelegate, hookimpl

class Kernel(DelegateKernel):
    factor = 2.0
    def init(self, context, params):
        self.params = params
    def bind(self, context, node):
        source, output, factor = node.inputs[0].data, node.outputs[0].data, np.float32(self.factor)
        return lambda: np.multiply(source, factor, output)

class WrongKernel(Kernel):
    factor = 3.0

class Quick(SimpleDelegate):
    name = "Quick"
    kernel = Kernel
    def is_node_supported(self, context, node):
        return node.op_name == "Slow" or f"{node.op_name} is not Slow"
    def create_kernel(self, params):
        return self.kernel()

class Wrong(Quick):
    name = "Wrong"
    kernel = WrongKernel

class NearKernel(Kernel):
    def bind(self, context, node):
        source, output = node.inputs[0].data, node.outputs[0].data
        def run():
            np.add(source, source, output)
            np.nextafter(output, np.float32(np.inf), output)
            time.sleep(0.002)  # never the fastest
        return run

class Near(Quick):
    name = "Near"
    kernel = NearKernel

class Idle(Quick):
    name = "Idle"
    def is_node_supported(self, context, node):
        return "it likes none"

class Broken(Quick):
    name = "Broken"
    def is_node_supported(self, context, node):
        raise RuntimeError("the device is on fire")

@hookimpl
def register_delegates(registry):
    for delegate in (Quick, Wrong, Near, Idle, Broken):
        registry.add(delegate.name.lower(), delegate)
"""


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """Two packages with the above, and no others but the built-in operators; choices are kept in a folder of the test's."""
    site = tmp_path / "site"
    fake_distribution(site, "slow-ops", "1.0", {"slow": "slow_ops"}, {"slow_ops": OPS})
    fake_distribution(site, "some-delegates", "1.0", {"some": "some_delegates"}, {"some_delegates": DELEGATES})
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv("OPLET_PLUGINS", "builtin_ops,slow,some")
    with installed(site):
        yield tmp_path / "cache"


@pytest.fixture
def measured_here(packages, monkeypatch):
    """Measures in this process, for tests of what is kept of a measurement: starting a process for each takes most of their time."""

    def refuse(*arguments: object, **options: object) -> None:
        raise ChildError("this test needs none")

    monkeypatch.setattr("oplet_tools.tuning.choice.measure_in_child", refuse)


def model_of(op: str, inputs: int = 1) -> bytes:
    builder = ModelBuilder()
    main = builder.add_subgraph()
    tensors = [main.add_tensor(f"t{i}", "float32", [4]) for i in range(inputs + 1)]
    main.add_operator(op, tensors[:-1], tensors[-1:])
    main.set_inputs(*tensors[:-1])
    main.set_outputs(tensors[-1])
    return builder.to_bytes()


def opened(content: bytes, text: str = "auto", **arguments: object) -> Interpreter:
    return Interpreter(model_content=content, experimental_delegates=text, plugins=PluginManager(), **arguments)


def ways(interpreter: Interpreter) -> dict[str, str]:
    return {str(trial.candidate): trial.why for trial in interpreter.choice.trials}


def amplifying(op: str) -> bytes:
    """The op, a product by a million and its sine: a last bit of the input is some percent of the output."""
    builder = ModelBuilder()
    main = builder.add_subgraph()
    x, y, z, out = (main.add_tensor(name, "float32", [4]) for name in "xyzo")
    million = main.add_tensor("million", "float32", [1], data=np.full(1, 1e6, np.float32))
    main.add_operator(op, [x], [y])
    main.add_operator("MUL", [y, million], [z])
    main.add_operator("SIN", [z], [out])
    main.set_inputs(x)
    main.set_outputs(out)
    return builder.to_bytes()


def test_where_a_last_bit_moves_the_answer_an_engine_may_be_off_by_that_and_no_more(packages):
    trials = opened(amplifying("Slow")).choice.trials
    near, wrong = (next(t for t in trials if t.candidate.delegates == (name,)) for name in ("near", "wrong"))
    assert near.error > 0.01
    assert not near.why
    assert "its error of" in wrong.why


def test_where_a_last_bit_moves_nothing_the_same_engine_is_held_to_the_bound(packages):
    trials = opened(model_of("Slow"), "auto:max_error=1e-8").choice.trials
    assert "its error of" in next(t.why for t in trials if t.candidate.delegates == ("wrong",))


def test_what_random_numbers_move_is_no_sensitivity_of_the_model(packages):
    from oplet_tools.tuning.timed_interpreter import TimedInterpreter

    builder = ModelBuilder()
    main = builder.add_subgraph()
    x, noise, out = (main.add_tensor(name, "float32", [4]) for name in ("x", "noise", "out"))
    shape = main.add_tensor("shape", "int32", [1], data=np.array([4], np.int32))
    main.add_operator("RANDOM_UNIFORM", [shape], [noise])
    main.add_operator("ADD", [x, noise], [out])
    main.set_inputs(x)
    main.set_outputs(out)
    interpreter = Interpreter(model_content=builder.to_bytes())
    assert TimedInterpreter(interpreter, {x: np.ones(4, np.float32)}).sensitivities() == [0]


def test_nudged_values_are_neighbours():
    from oplet_tools.tuning.random_inputs import perturbed_input

    random = np.random.default_rng(1)
    real = {"quantization": (0.0, 0)}
    values = np.linspace(-2, 2, 1001, dtype=np.float32)
    moved = perturbed_input(values, real, random)
    assert ((moved == np.nextafter(values, np.float32(9))) | (moved == np.nextafter(values, np.float32(-9)))).all()
    steps = np.arange(-128, 128, dtype=np.int8).repeat(10)
    stepped = perturbed_input(steps, {"quantization": (0.5, 0)}, random).astype(int) - steps
    assert set(stepped) == {-1, 0, 1}
    assert 0.05 < np.abs(stepped).mean() < 0.25
    assert perturbed_input(steps, real, random) is steps  # numbers that count


def test_the_fastest_delegate_whose_answers_are_right_is_taken(packages):
    interpreter = opened(model_of("Slow"))
    assert interpreter.choice.candidate.delegates == ("quick",)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.arange(4, dtype=np.float32))
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(1), [0, 2, 4, 6])


def test_every_other_way_has_its_reason(packages):
    why = ways(opened(model_of("Slow")))
    assert why["quick + builtin_ops"] == why["builtin_ops"] == ""
    assert "is above 0.0005" in why["wrong + builtin_ops"]
    assert why["idle + builtin_ops"] == "idle claims no node: it likes none"
    assert "the device is on fire" in why["broken + builtin_ops"]


def test_the_turns_of_ways_of_like_speed_are_told_from_none_to_all_of_them(measured_here, tmp_path, monkeypatch):
    monkeypatch.setattr("oplet_tools.tuning.trials.CLOSE", math.inf)
    told: list[float] = []
    path = tmp_path / "slow.tflite"
    path.write_bytes(model_of("Slow"))
    tune_model(path, plugins=PluginManager(), progress=lambda what, part: "in turns" in what and told.append(part))
    assert told[0] == 0.0
    assert told[-1] == 1.0
    assert told == sorted(told)
    assert len(set(told)) > 2


def test_explain_says_what_was_chosen_and_why(packages):
    [node] = opened(model_of("Slow")).explain()
    assert "auto chose quick + builtin_ops" in node.why
    [kernels] = re.findall(r"builtin_ops ([\d.]+) ms$", node.why)
    assert float(kernels) >= 6, "the time of the built-in kernels"


def test_kernels_that_replace_built_in_ones_are_left_out_where_they_are_slower(packages):
    interpreter = opened(model_of("ADD", 2))
    assert str(interpreter.choice.candidate) == "builtin_ops"
    assert [node.distribution for node in interpreter.explain()] == ["oplet-builtin-ops"]
    assert set(ways(interpreter)) >= {"builtin_ops", "slow"}


@pytest.mark.usefixtures("measured_here")
def test_a_choice_is_measured_once_for_a_model_and_a_number_of_threads(packages):
    content = model_of("Slow")
    first = opened(content).choice
    second = opened(content).choice
    assert (first.remembered, second.remembered) == (False, True)
    assert second.candidate == first.candidate
    assert second.trials == first.trials
    assert not opened(content, num_threads=2).choice.remembered
    assert not opened(model_of("ADD", 2)).choice.remembered
    assert not opened(content, "auto:max_error=0.5").choice.remembered


@pytest.mark.usefixtures("measured_here")
def test_a_choice_is_measured_again_when_other_packages_are_installed(packages, monkeypatch):
    content = model_of("Slow")
    opened(content)
    monkeypatch.setenv("OPLET_PLUGINS", "builtin_ops,slow")
    choice = opened(content).choice
    assert not choice.remembered
    assert str(choice.candidate) == "builtin_ops"


@pytest.mark.usefixtures("measured_here")
def test_a_damaged_file_is_measured_over(packages, caplog):
    content = model_of("Slow")
    path = opened(content).choice.path
    with open(path) as file:
        kept = json.load(file)
    for trials in (7, [{**trial, "seconds": 10**400} for trial in kept["trials"]]):  # which is more than a float holds
        caplog.clear()
        with open(path, "w") as file:
            json.dump({**kept, "trials": trials}, file)
        with caplog.at_level(logging.WARNING, "oplet.tuning"):
            assert not opened(content).choice.remembered
        assert "is damaged" in caplog.text
    with open(path, "w") as file:
        file.write("{")
    assert not opened(content).choice.remembered
    assert opened(content).choice.remembered


@pytest.mark.usefixtures("measured_here")
@pytest.mark.parametrize(
    "planted",
    [
        {"delegates": ["broken:path=/tmp/x.so"]},
        {"delegates": ["some_delegates:Quick"]},
        {"delegates": ["quick", "quick"]},
        {"prefer": ["somebody", "builtin_ops"]},
        {"kernels": "slow", "prefer": []},
        {"kernels": ["slow"]},
        {"delegates": ["quick"], "nodes": ["0-3"]},
    ],
    ids=str,
)
def test_a_planted_file_chooses_nothing_that_measuring_could_not(packages, caplog, planted):
    content = model_of("Slow")
    first = opened(content).choice
    with open(first.path) as file:
        kept = json.load(file)
    with open(first.path, "w") as file:
        json.dump({**kept, "choice": {**kept["choice"], **planted}}, file)
    choice = opened(content).choice
    assert not choice.remembered
    assert choice.candidate in [trial.candidate for trial in choice.trials]
    assert "is damaged" in caplog.text


@pytest.mark.usefixtures("measured_here")
@pytest.mark.parametrize("planted", [{"seconds": "1"}, {"seconds": -1}, {"why": 7}, {"claimed": ["x"]}, {"nodes": None}], ids=str)
def test_a_planted_file_with_values_of_other_kinds_is_measured_over(packages, planted):
    content = model_of("Slow")
    path = opened(content).choice.path
    with open(path) as file:
        kept = json.load(file)
    kept["trials"][0].update(planted)
    with open(path, "w") as file:
        json.dump(kept, file)
    assert not opened(content).choice.remembered


def test_a_folder_that_cannot_be_written_costs_a_warning_and_no_more(packages, caplog):
    packages.write_text("a file where the folder should be")
    interpreter = opened(model_of("Slow"))
    assert interpreter.choice.candidate.delegates == ("quick",)
    assert "cannot be remembered" in caplog.text


@pytest.mark.usefixtures("measured_here")
def test_a_remembered_delegate_that_fails_now_is_measured_again(packages, monkeypatch, caplog):
    content = model_of("Slow")
    opened(content)
    import some_delegates

    def refuse(self, options=None):
        raise RuntimeError("the device is gone")

    monkeypatch.setattr(some_delegates.Quick, "__init__", refuse)
    with caplog.at_level(logging.WARNING, "oplet.tuning"):
        interpreter = opened(content)
    assert str(interpreter.choice.candidate) == "builtin_ops"
    assert "the device is gone" in caplog.text


def test_no_time_means_the_built_in_kernels(packages):
    choice = opened(model_of("Slow"), "auto:max_seconds=0").choice
    assert str(choice.candidate) == "builtin_ops"
    assert {trial.why for trial in choice.trials[1:]} == {"there was no time left to measure it"}


def test_a_model_that_nothing_runs_says_so_as_ever(packages, monkeypatch):
    monkeypatch.setenv("OPLET_PLUGINS", "builtin_ops")
    interpreter = opened(model_of("Slow"))
    assert "nothing could be measured" in str(interpreter.choice)
    assert not packages.exists()
    with pytest.raises(UnresolvedOpError, match="Slow"):
        interpreter.allocate_tensors()


def test_a_model_that_only_a_delegate_runs_is_run_by_it(packages, monkeypatch):
    monkeypatch.setenv("OPLET_PLUGINS", "builtin_ops,some")
    choice = opened(model_of("Slow")).choice
    assert choice.candidate.delegates in (("quick",), ("wrong",)), "there is nothing to tell the wrong one by"
    assert {trial.error for trial in choice.trials} == {None}


@pytest.mark.parametrize("text", ["", "automatic", "auto:speed=1", "auto:max_error=much", "auto:max_error=-1"])
def test_a_text_that_is_not_auto_is_refused(packages, text):
    if not text:
        text = "auto:"
    with pytest.raises(DelegateLoadError, match="or 'auto'"):
        opened(model_of("Slow"), text)


def test_tune_shows_every_way_and_run_takes_the_best(packages, oplet, tmp_path):
    path = tmp_path / "slow.tflite"
    path.write_bytes(model_of("Slow"))
    tuned = oplet("tune", path)
    assert tuned.code == 0, tuned.err
    assert "> quick + builtin_ops" in " ".join(tuned.out.split())
    assert "the device is on fire" in " ".join(tuned.out.split())
    ran = oplet("run", path, "--delegate", "auto")
    assert ran.code == 0, ran.err
    assert "1 by the delegate quick" in ran.out
    assert "auto chose quick + builtin_ops" in ran.out
    measured = json.loads(oplet("benchmark", path, "--delegate", "auto", *QUICK, "--json").out)
    assert measured["choice"].startswith("auto chose quick")


def test_what_tune_chose_is_what_auto_takes_wherever_it_is_asked_for(packages, oplet, tmp_path):
    """Measured on the user's values, it is not measured again on random ones: there is one file, and its times are those that are told."""
    path = tmp_path / "slow.tflite"
    path.write_bytes(model_of("Slow"))
    np.save(tmp_path / "x.npy", np.ones(4, np.float32))
    tuned = json.loads(oplet("tune", path, "-i", tmp_path / "x.npy", "--json").out)
    kept = tuned["path"]
    assert [str(file) for file in (packages / "choices").iterdir()] == [kept]
    before = os.stat(kept).st_mtime_ns
    for settings in (
        {},
        {"use_mmap": False},
        {"use_mmap": True},
        {"experimental_preserve_all_tensors": False},
        {"num_threads": 1},
    ):
        choice = Interpreter(path, experimental_delegates="auto", **settings).choice
        assert (choice.remembered, choice.path) == (True, kept), settings
    for command in ("run", "benchmark"):
        quick = QUICK if command == "benchmark" else ["--no-mmap"]
        assert oplet(command, path, "--delegate", "auto", *quick).code == 0
    assert [str(file) for file in (packages / "choices").iterdir()] == [kept]
    assert os.stat(kept).st_mtime_ns == before
    # What changes how nodes run asks for a choice of its own.
    assert not Interpreter(path, experimental_delegates="auto", experimental_preserve_all_tensors=True).choice.remembered


def test_where_nothing_can_be_remembered_a_command_measures_once_and_says_so_once(packages, oplet, tmp_path, monkeypatch):
    path = tmp_path / "slow.tflite"
    path.write_bytes(model_of("Slow"))
    (tmp_path / "file").write_text("in place of a folder")
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "file" / "cache"))
    ran = oplet("run", path, "--delegate", "auto")
    assert ran.code == 0, ran.err
    assert ran.err.count("cannot be remembered") == 1
    assert "auto chose" in ran.out


def test_tune_takes_the_users_values_and_tolerance(packages, oplet, tmp_path):
    path = tmp_path / "slow.tflite"
    path.write_bytes(model_of("Slow"))
    np.save(tmp_path / "x.npy", np.zeros(4, np.float32))
    tuned = json.loads(oplet("tune", path, "-i", tmp_path / "x.npy", "--json").out)
    wrong = next(t for t in tuned["trials"] if t["candidate"]["delegates"] == ["wrong"])
    assert wrong["error"] == 0, "three times zero is right"
    strict = json.loads(oplet("tune", path, "--max-error", 10, "--json").out)
    assert next(t for t in strict["trials"] if t["candidate"]["delegates"] == ["wrong"])["why"] == ""


def test_auto_stands_alone(packages, oplet, tmp_path):
    path = tmp_path / "slow.tflite"
    path.write_bytes(model_of("Slow"))
    ran = oplet("run", path, "--delegate", "auto", "--delegate", "quick")
    assert ran.code == 1
    assert "stands alone" in ran.err


def test_nothing_is_chosen_unless_asked_for(packages):
    interpreter = Interpreter(model_content=model_of("Slow"), plugins=PluginManager())
    assert interpreter.choice is None
    assert not os.path.exists(packages)


FLOAT = {"quantization": (0.0, 0)}
INT8 = {"quantization": (0.5, 10)}


@pytest.mark.parametrize(
    ("got", "wanted", "details", "error"),
    [
        ([1.0, 2.0], [1.0, 2.0], FLOAT, 0.0),
        ([0.25], [0.5], FLOAT, 0.5),
        ([90.0], [100.0], FLOAT, 0.1),
        ([np.nan, np.inf], [np.nan, np.inf], FLOAT, 0.0),
        ([np.nan], [1.0], FLOAT, np.inf),
        ([1.0], [np.nan], FLOAT, np.inf),
        ([1.0], [1.0, 2.0], FLOAT, np.inf),
        (np.int8([11, 30]), np.int8([12, 30]), INT8, 0.05),
        (np.int64([3]), np.int64([4]), FLOAT, 0.25),
        (np.array([b"a"], object), np.array([b"a"], object), FLOAT, 0.0),
        (np.array([b"a"], object), np.array([b"b"], object), FLOAT, np.inf),
        ([], [], FLOAT, 0.0),
    ],
)
def test_the_error_is_relative_to_the_largest_value(got, wanted, details, error):
    found = output_differences([np.asarray(got)], [np.asarray(wanted)], [details], ModelKind.FLOAT32)
    assert largest_error(found) == pytest.approx(error)
