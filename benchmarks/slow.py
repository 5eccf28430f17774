"""Recorded cases of one operator, sorted by how much slower than LiteRT they are.

    python -m benchmarks slow [FOLDER] [--only GROUP ...] [--rounds N] [--out FOLDER] [--before FILE]

FOLDER holds the .zip files of recorded cases (`../shared/conformance/ops` unless given). Measured are the cases whose main subgraph has
one node, nodes that quantize its inputs and dequantize its outputs apart, on the inputs of their first step. LiteRT as it comes (with
XNNPACK) and oplet with numpy's kernels and with compiled ones take turns in one process with one thread.

What a call of `invoke` costs without any node is measured too, in the same rounds. It is the interpreter's, and no matter of the
operator's, with numpy's settings for kernels where the case's kernels are numpy's: the ratio that cases are sorted by has LiteRT's fixed
cost in the place of oplet's,

    (invoke - what oplet's costs without nodes + what LiteRT's costs without nodes) / LiteRT's invoke,

and the ratio of whole calls stands beside it. `slow.json` and `slow.md` in the output folder hold all of them; with `--before`, an
earlier `slow.json`, the table also says what each was then.
"""

from __future__ import annotations

import argparse
import io
import json
import statistics
import sys
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import common, runners  # first: it has BLAS use one thread

import numpy as np  # isort: skip

from oplet import Model
from oplet.model.files.atomic_write import write_atomically
from oplet.runtime.blas import KernelNumpySettings

__all__ = ["Case", "cases", "main", "slow"]

#: Recorded cases beside the repository.
_RECORDED = Path(__file__).resolve().parents[2] / "shared" / "conformance" / "ops"
_RIVAL = "litert-xnnpack"
#: oplet's runners, each with the ratio that its cases should stay below.
LIMITS = {"oplet-numpy": 8.0, "oplet-compiled": 3.0}
#: Operators that do not count: they stand around quantized ones.
_AROUND = ("QUANTIZE", "DEQUANTIZE")
#: A turn is as many calls as take so many seconds, up to so many.
_TURN, _MOST_CALLS = 2e-4, 50
#: The rows of the printed table.
_ROWS = 60


class Case(NamedTuple):
    """A recorded case.

    Attributes:
        name: its group and its folder in the group's file.
        op: the operator.
        content: the model.
        values: the value of each input, by the tensor's index.
    """

    name: str
    op: str
    content: bytes
    values: dict[int, Any]


def cases(folder: Path, groups: Collection[str] = ()) -> Iterator[Case]:
    """The cases of one operator in a folder of .zip files, whose names are the groups."""
    for path in sorted(folder.glob("*.zip")):
        if path.stem == "unrunnable" or (groups and path.stem not in groups):
            continue
        with zipfile.ZipFile(path) as archive:
            for entry in sorted(archive.namelist()):
                if not entry.endswith("/case.json"):
                    continue
                name = entry.rpartition("/")[0]
                case = json.loads(archive.read(entry))
                if not case["steps"] or len({op.split(" ")[0] for op in case["ops"]} - set(_AROUND)) > 1:
                    continue
                content = archive.read(f"{name}/model.tflite")
                op = _only_op(content)
                if op:
                    yield Case(f"{path.stem}/{name}", op, content, _values(archive, name, case["steps"][0], content))


def _only_op(content: bytes) -> str:
    """The operator of a model of one node; "" for a model of several."""
    model = Model.from_bytes(content)
    names = []
    for operator in (model.root.subgraphs or [])[0].operators or []:
        builtin, custom, _ = model.op_of(operator)
        names.append(custom or builtin.name)
    within = [name for name in names if name not in _AROUND] or names[:1]
    return within[0] if len(within) == 1 else ""


def _values(archive: zipfile.ZipFile, name: str, step: Mapping[str, Any], content: bytes) -> dict[int, Any]:
    """The recorded value of each input."""
    with np.load(io.BytesIO(archive.read(f"{name}/io.npz")), allow_pickle=False) as file:
        recorded = {key: file[key] for key in file.files}
    interpreter = runners.make("oplet-numpy", content)
    if step["signature"] is None:
        indices = [detail["index"] for detail in interpreter.get_input_details()]
    else:
        inputs = interpreter._get_full_signature_list()[step["signature"]]["inputs"]
        indices = [inputs[item["name"]] for item in step["inputs"]]
    values = {}
    for index, item in zip(indices, step["inputs"]):
        value = recorded[item["key"]]
        values[index] = value.astype(object) if item.get("string") and value.ndim else value
    return values


def _prepared(kind: str, case: Case) -> Callable[[], object]:
    """A callable that runs the case's model on its inputs."""
    interpreter = runners.make(kind, case.content)
    shapes = {detail["index"]: tuple(detail["shape"]) for detail in interpreter.get_input_details()}
    for index, value in case.values.items():
        if shapes.get(index, np.shape(value)) != np.shape(value):
            interpreter.resize_tensor_input(index, np.shape(value))
    interpreter.allocate_tensors()
    for index, value in case.values.items():
        interpreter.set_tensor(index, value)
    interpreter.invoke()
    return interpreter.invoke  # type: ignore[no-any-return]


def _empty() -> Case:
    """A model without nodes, whose output is its input."""
    from oplet import ModelBuilder

    builder = ModelBuilder("empty")
    graph = builder.add_subgraph()
    x = graph.add_tensor("x", np.float32, [1])
    graph.set_inputs(x)
    graph.set_outputs(x)
    return Case("empty", "", builder.to_bytes(), {})


def _plain(call: Callable[[], object]) -> Callable[[], object]:
    """An `invoke` of oplet with numpy's settings for kernels, as where a kernel of numpy runs."""

    def run() -> None:
        with KernelNumpySettings():
            call()

    return run


def _needs_settings(call: Any) -> bool:
    """Whether an `invoke` runs a kernel of numpy."""
    call()  # neighbours are joined in the second run
    return not call.__self__._subgraphs[0].is_joined


class _Turn:
    """As many calls as fill a turn.

    Attributes:
        calls: their number.
    """

    def __init__(self, call: Callable[[], object]) -> None:
        seconds = min(common.take_turns({"": call}, 3)[""])
        self.calls = min(max(int(_TURN / max(seconds, 1e-9)), 1), _MOST_CALLS)
        self._call = call

    def __call__(self) -> None:
        call = self._call
        for _ in range(self.calls):
            call()


def _measure(case: Case, empty: Mapping[str, _Turn], rounds: int) -> dict[str, Any]:
    """Microseconds and ratios of a case, and the words of runners that cannot run it."""
    turns: dict[str, _Turn] = {}
    fixed: dict[str, _Turn] = {}
    refused = {}
    for kind in (_RIVAL, *LIMITS):
        if kind not in empty:
            continue
        try:
            invoke = _prepared(kind, case)
            turns[kind] = _Turn(invoke)
            if kind in LIMITS and _needs_settings(invoke):
                fixed[f"{kind} empty"] = empty[f"{kind} settings"]
            else:
                fixed[f"{kind} empty"] = empty[kind]
        except Exception as error:  # each runtime has its own exception classes
            refused[kind] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    seconds = common.take_turns({**turns, **fixed}, rounds)
    calls = {**{kind: turn.calls for kind, turn in turns.items()}, **{name: turn.calls for name, turn in fixed.items()}}
    micro = {name: np.asarray(taken) / calls[name] * 1e6 for name, taken in seconds.items()}
    measured: dict[str, Any] = {"op": case.op, "microseconds": {kind: float(np.median(micro[kind])) for kind in turns}}
    measured["fixed"] = {kind: float(np.median(micro[f"{kind} empty"])) for kind in turns}
    measured["ratio"], measured["whole"] = {}, {}
    for kind in turns:
        if kind != _RIVAL and _RIVAL in turns:
            without = np.maximum(micro[kind] - micro[f"{kind} empty"], 0)
            ratios = (without + micro[f"{_RIVAL} empty"]) / micro[_RIVAL]
            measured["ratio"][kind] = float(np.median(ratios))
            measured["whole"][kind] = float(np.median(micro[kind] / micro[_RIVAL]))
    if refused:
        measured["refused"] = refused
    return measured


def slow(
    found: Iterator[Case],
    rounds: int,
    before: Mapping[str, Any] | None = None,
    tell: Callable[[str], None] = print,
    rows: int = _ROWS,
) -> common.Section:
    """Measure the cases.

    Args:
        before: the data of an earlier measurement, to which this one is compared.
        rows: the most rows of the table of cases.
    """
    kinds = [kind for kind in (_RIVAL, *LIMITS) if runners.installed(kind)]
    calls = {kind: _prepared(kind, _empty()) for kind in kinds}
    empty = {kind: _Turn(call) for kind, call in calls.items()}
    empty |= {f"{kind} settings": _Turn(_plain(calls[kind])) for kind in kinds if kind in LIMITS}
    measured: dict[str, Any] = {}
    for case in found:
        measured[case.name] = _measure(case, empty, rounds)
        tell(f"{case.name}: {_ratios(measured[case.name])}")
    fixed = {
        kind: statistics.median(values)
        for kind in kinds
        if (values := [each["fixed"][kind] for each in measured.values() if kind in each["fixed"]])
    }
    judged = sorted((each for each in measured.items() if each[1]["ratio"]), key=lambda each: -_excess(each[1]))
    lines = [
        f"{len(judged)} cases of one operator, {rounds} rounds, one thread. A call without any node takes "
        + ", ".join(f"{kind} {value:.2f} us" for kind, value in fixed.items())
        + ". Ratios are to LiteRT's time, with LiteRT's fixed cost in the place of oplet's; those of whole calls stand in brackets.",
        "",
        *_summary(judged),
        "",
        *_by_op(judged),
        "",
        *_by_case(judged[:rows], {} if before is None else before),
    ]
    return common.Section("Slow list", lines, {"fixed": fixed, "cases": measured})


def _excess(each: Mapping[str, Any]) -> float:
    """How far a case is above its limits: the largest of its ratios, as shares of their limits."""
    return max(float(each["ratio"].get(kind, 0)) / limit for kind, limit in LIMITS.items())


def _ratios(each: Mapping[str, Any]) -> str:
    return ", ".join(f"{kind} {ratio:.2f} ({each['whole'][kind]:.2f})" for kind, ratio in each["ratio"].items())


def _summary(judged: Sequence[tuple[str, Mapping[str, Any]]]) -> list[str]:
    rows = []
    for kind, limit in LIMITS.items():
        ratios = [each["ratio"][kind] for _, each in judged if kind in each["ratio"]]
        if ratios:
            above = sum(ratio > limit for ratio in ratios)
            rows.append([kind, len(ratios), f"{common.geometric_mean(ratios):.2f}", f"{max(ratios):.2f}", f"{limit:g}", above])
    return common.table(["", "cases#", "geometric mean#", "slowest#", "limit#", "above it#"], rows)


def _by_op(judged: Sequence[tuple[str, Mapping[str, Any]]]) -> list[str]:
    """A row for each operator: its slowest case, and how many are above the limits."""
    by_op: dict[str, list[Mapping[str, Any]]] = {}
    for _, each in judged:
        by_op.setdefault(each["op"], []).append(each)
    rows = []
    for op, group in by_op.items():
        row: list[object] = [op, len(group)]
        for kind, limit in LIMITS.items():
            ratios = [each["ratio"][kind] for each in group if kind in each["ratio"]]
            above = sum(ratio > limit for ratio in ratios)
            row += [f"{common.geometric_mean(ratios):.2f}", f"{max(ratios):.2f}", above] if ratios else ["-"] * 3
        rows.append(row)
    columns = [f"{kind} {what}#" for kind in LIMITS for what in ("mean", "slowest", "above its limit")]
    return common.table(["operator", "cases#", *columns], rows)


def _by_case(judged: Sequence[tuple[str, Mapping[str, Any]]], before: Mapping[str, Any]) -> list[str]:
    earlier = before.get("cases", {})
    columns = ["case", "operator", *(f"{kind} us#" for kind in (_RIVAL, *LIMITS))]
    columns += [f"{kind} / {_RIVAL}#" for kind in LIMITS] + ([f"{kind} before#" for kind in LIMITS] if earlier else [])
    rows = []
    for name, each in judged:
        micro, ratio, whole = each["microseconds"], each["ratio"], each["whole"]
        row = [name[:70], each["op"], *(f"{micro[kind]:.2f}" if kind in micro else "-" for kind in (_RIVAL, *LIMITS))]
        row += [f"{ratio[kind]:.2f} ({whole[kind]:.2f})" if kind in ratio else "-" for kind in LIMITS]
        if earlier:
            then = earlier.get(name, {}).get("ratio", {})
            row += [f"{then[kind]:.2f}" if kind in then else "-" for kind in LIMITS]
        rows.append(row)
    return common.table(columns, rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run as a program."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks slow", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", default=_RECORDED)
    parser.add_argument("--only", nargs="+", default=(), metavar="GROUP", help="the groups to measure")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--rows", type=int, default=_ROWS, help="the most cases of the table")
    parser.add_argument("--out", type=Path, default=Path("benchmark-results"), help="where slow.md and slow.json go")
    parser.add_argument("--before", type=Path, help="an earlier slow.json")
    given = parser.parse_args(arguments)
    found = list(given.folder.glob("*.zip"))
    if not found:
        parser.error(f"{given.folder} has no .zip files of recorded cases.")
    if not runners.installed(_RIVAL):
        parser.error(
            "ai-edge-litert is not installed: there is nothing to compare with (pip install -r benchmarks/requirements.txt)."
        )
    before = json.loads(given.before.read_text("utf-8")) if given.before else None
    tell: Callable[[str], None] = lambda line: print(line, file=sys.stderr, flush=True)  # noqa: E731
    section = slow(cases(given.folder, given.only), given.rounds, before, tell, given.rows)
    given.out.mkdir(parents=True, exist_ok=True)
    write_atomically(given.out / "slow.md", section.markdown)
    write_atomically(given.out / "slow.json", json.dumps(section.data, indent=1))
    print(section.markdown)


if __name__ == "__main__":
    main()
