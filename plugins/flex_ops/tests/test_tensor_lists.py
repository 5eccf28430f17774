"""TensorLists give what TensorFlow's give, refuse what it refuses, and are values that change in constant time."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from plugins.flex_ops.tests.chains import Step, assert_same, chain_model, oplet_chain
from tests.places import SWEEP

from oplet import Interpreter, Limits, TensorType
from oplet.errors import LimitError, OpletError
from oplet_flex_ops.lists.persistent import PersistentList

F, INT = {"element_dtype": TensorType.FLOAT32, "shape_type": TensorType.INT32}, np.int32
SHAPES: list[np.ndarray] = [np.array(shape, INT) for shape in (-1, [], [2], [-1], [2, -1], [3, 2])]


def _rows(choose: random.Random, *shape: int) -> np.ndarray:
    return np.array([choose.randrange(-9, 10) for _ in range(int(np.prod(shape)))], np.float32).reshape(shape)


class _Program:
    """A random row of nodes on lists: most of them valid, some not."""

    def __init__(self, choose: random.Random) -> None:
        self.choose, self.steps, self.feeds = choose, [], {}  # type: ignore[var-annotated]
        self.lists: list[str] = []
        self.element = choose.choice([(), (2,), (3, 2)])
        #: Whether shapes may contradict each other. TensorListScatterIntoExistingList does not look at them in TensorFlow.
        self.odd = choose.random() < 0.6
        self._create()
        if choose.random() < 0.3:
            self._create()
        for _ in range(choose.randrange(1, 7)):
            getattr(self, choose.choice(self.CHANGES))()
        for name in self.lists:
            self._add("TensorListLength", name, "INT32", {})

    CHANGES = (
        "_set", "_set", "_get", "_get", "_push", "_pop", "_resize", "_stack", "_gather", "_concat", "_into", "_lists", "_shape",
    )  # fmt: skip

    def _feed(self, value: object, dtype: type = np.int32) -> str:
        name = f"feed{len(self.feeds)}"
        self.feeds[name] = np.asarray(value, dtype)
        return name

    def _add(self, op: str, inputs: str, types: str, attributes: dict[str, object]) -> list[str]:
        names = [f"{type.lower()}{len(self.steps)}_{position}" for position, type in enumerate(types.split())]
        outputs = " ".join(f"{name}:{type}" for name, type in zip(names, types.split()))
        self.steps.append(Step(op, inputs, outputs, attributes))
        self.lists += [name for name in names if name.startswith("variant")]
        return names

    def _partial(self) -> str:
        """A shape that the elements have, in part or whole; now and then another one."""
        choose = self.choose
        if self.odd and choose.random() < 0.1:
            return self._feed(choose.choice(SHAPES))
        if choose.random() < 0.2:
            return self._feed(-1)
        return self._feed([size if choose.random() < 0.8 else -1 for size in self.element])

    def _value(self, *lead: int) -> str:
        shape = self.element if not self.odd or self.choose.random() < 0.9 else self.choose.choice([(), (2,), (3, 2), (1, 2)])
        return self._feed(_rows(self.choose, *lead, *shape), np.float32)

    def _list(self) -> str:
        return self.choose.choice(self.lists)

    def _index(self) -> str:
        return self._feed(self.choose.choice([0, 0, 0, 1, 1, 2, 3, -1, 7]))

    def _create(self) -> None:
        choose = self.choose
        kind = choose.choice(["empty", "reserve", "reserve", "from", "from", "scatter", "scatter2", *["split"] * self.odd])
        if kind == "empty":
            self._add("EmptyTensorList", f"{self._partial()} {self._feed(choose.choice([-1, 2, 5]))}", "VARIANT", F)
        elif kind == "reserve":
            self._add("TensorListReserve", f"{self._partial()} {self._feed(choose.choice([0, 1, 3, 4]))}", "VARIANT", F)
        elif kind == "from":
            self._add("TensorListFromTensor", f"{self._value(choose.randrange(4))} {self._partial()}", "VARIANT", F)
        elif kind == "split":
            lengths = [choose.randrange(3) for _ in range(choose.randrange(1, 4))]
            total = sum(lengths) + (choose.random() < 0.1)
            shape = self._feed([-1, *self.element] if choose.random() < 0.8 else -1)
            value = self._feed(_rows(choose, total, *self.element), np.float32)
            self._add("TensorListSplit", f"{value} {shape} {self._feed(lengths, np.int64)}", "VARIANT", F)
        else:
            count = choose.randrange(4)
            indices = self._feed([choose.choice([0, 1, 2, 3, 3, 4]) for _ in range(count)])
            inputs = f"{self._value(count)} {indices} {self._partial()}"
            if kind == "scatter2":
                self._add("TensorListScatterV2", f"{inputs} {self._feed(choose.choice([-1, 3, 5, 5]))}", "VARIANT", F)
            else:
                self._add("TensorListScatter", inputs, "VARIANT", F)

    def _set(self) -> None:
        index, resize = self._index(), self.choose.random() < 0.3
        if self.feeds[index] >= 0:  # TensorFlow 2.21 crashes where it makes room for a negative index
            resizing = F | {"resize_if_index_out_of_bounds": True} if resize else F
            self._add("TensorListSetItem", f"{self._list()} {index} {self._value()}", "VARIANT", resizing)

    def _get(self) -> None:
        self._add("TensorListGetItem", f"{self._list()} {self._index()} {self._partial()}", "FLOAT32", F)

    def _push(self) -> None:
        self._add("TensorListPushBack", f"{self._list()} {self._value()}", "VARIANT", F)

    def _pop(self) -> None:
        self._add("TensorListPopBack", f"{self._list()} {self._partial()}", "VARIANT FLOAT32", F)

    def _resize(self) -> None:
        self._add("TensorListResize", f"{self._list()} {self._feed(self.choose.choice([0, 1, 3, 5, -1]))}", "VARIANT", {})

    def _stack(self) -> None:
        number = {"num_elements": self.choose.choice([-1, -1, -1, 3])}
        self._add("TensorListStack", f"{self._list()} {self._partial()}", "FLOAT32", F | number)

    def _gather(self) -> None:
        # TensorFlow 2.21 reads any memory for an index that the list does not have, so that only element 0 is asked for here
        indices = self._feed([0] * self.choose.randrange(3))
        self._add("TensorListGather", f"{self._list()} {indices} {self._partial()}", "FLOAT32", F)

    def _concat(self) -> None:
        lengths = self._feed([self.choose.randrange(3) for _ in range(self.choose.randrange(4))], np.int64)
        if self.choose.random() < 0.5:
            self._add("TensorListConcatV2", f"{self._list()} {self._partial()} {lengths}", "FLOAT32 INT64", F)
        else:
            shape = None if self.choose.random() < 0.5 else self.element
            self._add("TensorListConcat", self._list(), "FLOAT32 INT64", F | {"element_shape": shape})

    def _into(self) -> None:
        if self.odd:
            return
        # without gaps, which TensorFlow fills with empty vectors, not with elements that are not set
        indices = self.choose.choice([[0], [0, 0], [0, 1], [1, 0], [2, 0, 1]])
        rows = self._feed(_rows(self.choose, len(indices), *self.element), np.float32)
        self._add("TensorListScatterIntoExistingList", f"{self._list()} {rows} {self._feed(indices)}", "VARIANT", F)

    def _lists(self) -> None:
        self._add("TensorListConcatLists", f"{self._list()} {self._list()}", "VARIANT", F)

    def _shape(self) -> None:
        type = self.choose.choice([TensorType.INT32, TensorType.INT64])
        self._add("TensorListElementShape", self._list(), type.name, {"shape_type": type})


def _sweep(count: int, seed: int) -> None:
    answered = sum(
        assert_same(program.steps, program.feeds) for program in map(_Program, map(random.Random, range(seed, seed + count)))
    )
    assert count // 5 < answered < count


@pytest.mark.sweep
def test_random_programs_on_lists_give_what_tensorflow_gives() -> None:
    pytest.importorskip("tensorflow")
    _sweep(150, 0)


@pytest.mark.sweep
def test_many_random_programs_on_lists_give_what_tensorflow_gives() -> None:
    pytest.importorskip("tensorflow")
    _sweep(10_000 // SWEEP, 1000)


def test_a_batch_of_lists_is_appended_to() -> None:
    strings = {"element_dtype": TensorType.STRING}
    steps = [
        Step("EmptyTensorList", "shape most", "one:VARIANT", strings),
        Step("TensorListPushBack", "one first", "two:VARIANT", strings),
        Step("TensorListPushBackBatch", "batch rows", "pushed:VARIANT", strings),
        Step("TensorListStack", "two shape", "stack:STRING", strings),
    ]
    feeds = {"shape": np.array([], INT), "most": np.array(-1, INT), "first": np.array(b"a\0", object)}
    stack = oplet_chain([steps[0], steps[1], steps[3]], feeds)["stack"]
    assert stack.tolist() == [b"a\0"]
    with pytest.raises(OpletError, match="must be a vector of lists"):
        oplet_chain([steps[0], steps[2]._replace(inputs="one rows")], feeds | {"rows": np.array([b"x"], object)})


def test_an_older_list_keeps_its_elements() -> None:
    steps = [
        Step("TensorListFromTensor", "rows shape", "old:VARIANT", F),
        Step("TensorListSetItem", "old at item", "new:VARIANT", F),
        Step("TensorListStack", "old shape", "before:FLOAT32", F),
        Step("TensorListPopBack", "new shape", "shorter:VARIANT last:FLOAT32", F),
        Step("TensorListStack", "new shape", "after:FLOAT32", F),
        Step("TensorListStack", "shorter shape", "rest:FLOAT32", F),
    ]
    feeds = {
        "rows": np.array([1, 2, 3], np.float32), "shape": np.array([], INT), "at": np.array(1, INT), "item": np.array(9, np.float32),
    }  # fmt: skip
    found = oplet_chain(steps, feeds)
    assert found["before"].tolist() == [1, 2, 3]
    assert (found["after"].tolist(), found["last"].tolist(), found["rest"].tolist()) == ([1, 9, 3], 3, [1, 9])


@pytest.mark.parametrize(
    ("step", "sentence"),
    [
        (Step("TensorListGetItem", "list far shape", "x:FLOAT32", F), "there is no element 9 in a list of 2 elements"),
        (Step("TensorListSetItem", "list far item", "x:VARIANT", F), "there is no element 9 in a list of 2 elements"),
        (Step("TensorListSetItem", "list zero wide", "x:VARIANT", F), "cannot be of shape .* and of shape"),
        (
            Step("TensorListStack", "list shape", "x:FLOAT32", F | {"num_elements": 3}),
            "the list has 2 elements, the node stacks 3",
        ),
        (Step("TensorListResize", "list minus", "x:VARIANT"), "a list of -1 elements is asked for"),
        (Step("TensorListStack", "list shape", "x:INT32", {"element_dtype": TensorType.INT32}), "is of FLOAT32 elements"),
        (Step("TensorListGather", "list several shape", "x:FLOAT32", F), "there is no element -1"),
        (Step("TensorListStack", "list odd", "x:FLOAT32", F), "only -1 stands alone"),
    ],
)
def test_a_refusal_says_what_is_wrong(step: Step, sentence: str) -> None:
    feeds = {
        "rows": np.zeros((2, 2), np.float32), "shape": np.array([2], INT), "far": np.array(9, INT), "zero": np.array(0, INT),
        "item": np.zeros(2, np.float32), "wide": np.zeros(3, np.float32), "minus": np.array(-1, INT), "odd": np.array(3, INT),
        "several": np.array([0, -1], INT),
    }  # fmt: skip
    with pytest.raises(OpletError, match=sentence):
        oplet_chain([Step("TensorListFromTensor", "rows shape", "list:VARIANT", F), step], feeds)


def test_memory_of_lists_counts_against_the_limit() -> None:
    feeds = {"shape": np.array([], INT), "size": np.array(2**31 - 1, INT)}
    model = chain_model(
        [Step("TensorListReserve", "shape size", "list:VARIANT", F), Step("TensorListLength", "list", "n:INT32")], feeds
    )
    interpreter = Interpreter(model_content=model, plugins=["oplet-flex-ops"], limits=Limits(max_arena_bytes=1 << 20))
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), feeds.values()):
        interpreter.set_tensor(detail["index"], value)
    with pytest.raises(LimitError):
        interpreter.invoke()


#: What is done to one of the last versions of a list, to which one, and where in it.
CHANGES = st.tuples(st.sampled_from(["set", "append", "pop"]), st.integers(0, 7), st.integers(0, 100))


@given(st.lists(st.integers(), max_size=5), st.lists(CHANGES, max_size=60))
@example([], [("append", 0, 0), ("pop", 0, 0)] * 10)
@example([1], [("pop", 0, 0), ("append", 0, 0)] * 10)
def test_versions_of_a_list_are_values(start: list[int], changes: list[tuple[str, int, int]]) -> None:
    versions = [(PersistentList(start), start)]
    for number, (change, back, at) in enumerate(changes):
        version, items = versions[max(0, len(versions) - 1 - back)]
        if change == "append" or not items:
            versions.append((version.appended(number), [*items, number]))
        elif change == "pop":
            versions.append((version.shortened(), items[:-1]))
        else:
            at %= len(items)
            versions.append((version.replaced(at, number), [*items[:at], number, *items[at + 1 :]]))
    for version, items in [*versions, *reversed(versions), *versions[::3]]:
        assert version.items() == items
        assert version.size == len(items)
        assert [version.get(at) for at in range(len(items))] == items


@pytest.mark.parametrize("count", [0, 1, 2])
@pytest.mark.parametrize("changes", range(40))
def test_a_list_that_is_empty_when_it_is_copied_takes_what_comes_next(changes: int, count: int) -> None:
    """A version is copied after so many changes as no reader sees: whichever it is, the list may be empty just then."""
    version, items, kept = PersistentList(range(count)), list(range(count)), []
    for number in range(changes):
        version, items = (version.shortened(), items[:-1]) if items else (version.appended(number), [number])
        kept.append((version, items))
    for number in (-1, -2, -3):
        version, items = version.appended(number), [*items, number]
        kept.append((version, items))
    for found, expected in [*kept, *reversed(kept)]:
        assert (found.items(), found.size) == (expected, len(expected))


def _copied_items(run: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> int:
    """The items that are copied from list to list while a function runs."""
    copied = 0
    original = PersistentList.__init__

    def counting(self: PersistentList, items: object = ()) -> None:
        nonlocal copied
        original(self, items)  # type: ignore[arg-type]
        copied += self.size

    monkeypatch.setattr(PersistentList, "__init__", counting)
    run()
    return copied


def test_a_loop_of_changes_copies_each_item_a_few_times_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    start = PersistentList(range(1000))
    kept = [start]

    def change() -> None:
        version = start
        for number in range(20_000):
            version = version.replaced(number % 1000, number)
        kept.append(version)

    assert _copied_items(change, monkeypatch) <= 20_000
    assert kept[0].items() == list(range(1000))
    assert kept[1].items() == list(range(19_000, 20_000))


def test_threads_may_share_versions() -> None:
    old = PersistentList(range(100))
    new = old.replaced(0, "new")
    wrong: list[object] = []

    def read(version: PersistentList, first: object) -> None:
        for _ in range(5000):
            if version.get(0) != first or version.items()[0] != first:
                wrong.append(version.get(0))

    threads = [threading.Thread(target=read, args=(version, first)) for version, first in ((old, 0), (new, "new")) * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
