"""The Predictor: a model as a function of rows, shared by threads and sent to other processes by pickling."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, overload

from numpy.typing import NDArray

from oplet.errors import OpletError
from oplet.texts import logger_of
from oplet.toolkit import single_threaded_blas
from oplet_predictor.arguments import (
    Arguments,
    DelegateSpec,
    batch_argument,
    delegate_arguments,
    model_argument,
    plugins_argument,
    positive,
)
from oplet_predictor.batch_decision import BatchPlan, decide
from oplet_predictor.columns import Column, Rows, joined, placed, read_item, read_rows
from oplet_predictor.mapping import MapSettings, map_items
from oplet_predictor.opened_model import OpenedModel, fresh_opened
from oplet_predictor.pool import Lent, Outcome, Pool

if TYPE_CHECKING:
    from oplet import Limits, PluginManager
    from oplet.toolkit import Preference

__all__ = ["Predictor"]

Row = dict[str, NDArray[Any]]


class Predictor:
    """A model as a function of rows: N rows for each input give N rows of each output.

    It opens an interpreter when it is first called, one for each thread that calls it at the same time, in each process. It can be pickled,
    so that Ray, Beam, Spark, Dask and multiprocessing send it to their workers. Each row is run from the model's first state, so a row's
    results depend on nothing but the row.

    A row of an input whose first dimension is 1, or -1 in its `shape_signature`, has the dimensions after it: [224, 224, 3] for an input
    [1, 224, 224, 3]. A row of any other input is the whole tensor. The same holds for outputs.

    Args:
        model: the model's path, which must exist in each process that calls it, or its bytes.
        delegates: the delegates of each interpreter: names as on the command line ("example", "example:option=value"), pairs (name,
            options), functions that make a delegate; or "auto" for the fastest kernels and delegates. No `Delegate` objects.
        num_threads: the number of threads of each interpreter.
        signature: the key of the signature; None for the only one, or the first subgraph if there are several or none.
        limits: the limits of each interpreter; `Limits()` unless given.
        plugins: names of the plugins to use, or such names after "no:" for all but these; a PluginManager, with which it cannot be pickled.
        prefer: the package to take where several serve one op, see `Interpreter`.
        batch: None to run rows in batches only where that gives the same bits and is likely to be faster; True to batch also where floats
            may differ in their last bits; a number for batches of up to so many rows, under the same condition; False or 1 for
            single rows. `explain` tells what was decided.

    Raises:
        ModelError: `model` is neither a path nor bytes (a ValueError). Whether the model can be opened shows in the first call.
        DelegateError: `delegates` has an object that belongs to one interpreter.
        TensorError: `num_threads` or `batch` is no positive number (a ValueError).

    Examples:
        >>> from oplet import Predictor
        >>> predict = Predictor("mobilenet.tflite")  # doctest: +SKIP
        >>> predict({"image": images})["scores"].shape  # doctest: +SKIP
        (2000, 1000)
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | bytes | memoryview,
        *,
        delegates: Sequence[DelegateSpec] | str = (),
        num_threads: int = 1,
        signature: str | None = None,
        limits: Limits | None = None,
        plugins: PluginManager | Sequence[str] | None = None,
        prefer: Sequence[str] | Mapping[str, str] | Preference | None = None,
        batch: int | bool | None = None,
    ) -> None:
        self._arguments = Arguments(
            model_argument(model),
            delegate_arguments(delegates),
            positive("num_threads", num_threads),
            signature,
            limits,
            plugins_argument(plugins),
            prefer,
            batch_argument(batch),
        )
        self._pool = _pool_of(self._arguments)

    # Rows ----------------------------------------------------------------------------------------------------

    def __call__(self, rows: Mapping[str, Any] | Any) -> dict[str, NDArray[Any]]:
        """Run the model on rows; any number of threads may call at the same time.

        Args:
            rows: for each input, by its name, an array of shape (N, *row) and of exactly the input's dtype, as `Interpreter.set_tensor`
                takes it: nothing is cast, quantized or clamped. Where rows may have several shapes also a list of arrays. For a model
                with one input the array alone will do. Names are those of the signature or of the tensors; "serving_default_x:0" is also x.

        Returns:
            For each output, by name, an array of shape (N, *row). Rows of different shapes come as an array of dtype object and shape (N,),
            which has an array for each row.

        Raises:
            TensorError: names, dtypes, shapes or the numbers of rows do not fit (a ValueError).
            OpletError: the model cannot be opened, or a row cannot be run; the message begins with the row's number.
        """
        with self._pool.lend() as lent, single_threaded_blas():
            given = read_rows(lent.single.inputs, rows, self._arguments.name)
            return self._run(lent, given, "row", 0)

    def _run(self, lent: Lent, rows: Rows, noun: str, first: int) -> Row:
        """Run rows, in batches as far as the batch plan allows; return an array with all rows for each output, by name.

        Args:
            noun: what messages call a row: "row" or "item".
            first: the number of the first row, for messages.
        """
        single = lent.single
        collected = single.collect(rows.count)
        start = 0
        size = self._pool.plan(lent).size if rows.count > 1 and rows.alike else 1
        if size > 1:
            model = lent.batch(size)
            while 2 * (rows.count - start) >= size:  # a last batch that is half full is filled up
                stop = min(start + size, rows.count)
                try:
                    model.run_batch(rows, start, stop, collected)
                except OpletError:
                    break  # which row it was shows when they run one by one
                start = stop
        for row in range(start, rows.count):
            try:
                single.run_row(rows, row, collected, row)
            except OpletError as error:
                raise placed(error, f"{noun} {first + row}") from error.__cause__
        return {name: output.rows for name, output in zip(single.outputs, collected)}

    # Items ---------------------------------------------------------------------------------------------------

    @overload
    def map(
        self,
        iterable: Iterable[Any],
        workers: int = 1,
        *,
        processes: bool = False,
        ordered: Literal[True] = True,
        errors: Literal["raise"] = "raise",
        progress: bool | Callable[[int, int | None], object] = False,
    ) -> Generator[dict[str, NDArray[Any]], None, None]: ...

    @overload
    def map(
        self,
        iterable: Iterable[Any],
        workers: int = 1,
        *,
        processes: bool = False,
        ordered: bool = True,
        errors: Literal["raise", "return"] = "raise",
        progress: bool | Callable[[int, int | None], object] = False,
    ) -> Generator[Any, None, None]: ...

    def map(
        self,
        iterable: Iterable[Any],
        workers: int = 1,
        *,
        processes: bool = False,
        ordered: bool = True,
        errors: Literal["raise", "return"] = "raise",
        progress: bool | Callable[[int, int | None], object] = False,
    ) -> Generator[Any, None, None]:
        """Run the model on each item of an iterable, and yield the results in the same order.

        Items are read in the thread that takes the results, a few ahead of the workers, so that an endless generator needs bounded memory, and
        copied then, so that it may fill one array anew for each item.
        Closing the iterator (`close()`, the end of its life, an exception such as KeyboardInterrupt) stops the workers before the next node.

        Args:
            iterable: the items: for each input a row, by name; or for a model with one input the row alone. The tensor's whole value, with
                its leading dimension of 1, will do too.
            workers: the number of interpreters that run at the same time, each in a thread. One works in the calling thread. Threads do
                scale: kernels release Python's global lock while they compute.
            processes: run each worker in a new process (started afresh, not forked) in place of a thread, for models whose kernels are
                written in Python. A script that does so needs `if __name__ == "__main__":`.
            ordered: False to yield pairs (number of the item, result) as they are ready.
            errors: "raise" raises the error of an item where its result would be, and ends; "return" yields the `OpletError` in place of the
                result, and goes on.
            progress: True for a bar on standard error with the rate and the time left (needs rich, and a terminal); or a function that is
                called with the number of results so far and the number of items, None if the iterable has no length.

        Returns:
            A generator of dictionaries with a row for each output.

        Raises:
            TensorError: an argument is wrong (a ValueError).
            OpletError: from the iterator: an item cannot be run; the message begins with the item's number.
        """
        settings = MapSettings.checked(workers, processes, ordered, errors, progress)
        return map_items(self, iterable, settings, _copied)

    def _ensure_picklable(self) -> None:
        self._arguments.ensure_picklable()

    def _take(self) -> Lent:
        return self._pool.take()

    def _give(self, lent: Lent) -> None:
        self._pool.give(lent)

    def _batch_size(self, lent: Lent) -> int:
        return self._pool.plan(lent).size

    def _run_items(self, lent: Lent, first: int, items: Sequence[Any], stopped: Callable[[], bool]) -> list[Outcome]:
        """Run items (one row each), and return for each its result, or the error that it ended with.

        Args:
            first: the number of the first item.
            stopped: asked before each run; the rest of the items is left out once it is True.
        """
        outcomes: list[Outcome] = [None] * len(items)
        read: dict[int, Rows] = {}
        for place, item in enumerate(items):
            try:
                read[place] = read_item(lent.single.inputs, item, self._arguments.name)
            except OpletError as error:
                outcomes[place] = placed(error, f"item {first + place}")
        with single_threaded_blas():
            if len(read) > 1 and 2 * len(read) >= self._pool.plan(lent).size > 1:
                try:
                    rows = self._run(lent, joined(list(read.values())), "item", first)
                    for number, place in enumerate(read):
                        outcomes[place] = {name: column[number, ...] for name, column in rows.items()}
                    return outcomes
                except OpletError:
                    pass  # which item it was shows when they run one by one
            for place, row in read.items():
                if stopped():
                    break
                try:
                    outcomes[place] = {n: column[0, ...] for n, column in self._run(lent, row, "item", first + place).items()}
                except OpletError as error:
                    outcomes[place] = error
        return outcomes

    # Descriptions --------------------------------------------------------------------------------------------

    @property
    def inputs(self) -> dict[str, Column]:
        """The inputs by name: `name`, `dtype` and `shape` of a row, and the tensor's `details`. Opens the model."""
        with self._pool.lend() as lent:
            return dict(lent.single.inputs)

    @property
    def outputs(self) -> dict[str, Column]:
        """The outputs by name: `name`, `dtype` and `shape` of a row, and the tensor's `details`. Opens the model."""
        with self._pool.lend() as lent:
            return dict(lent.single.outputs)

    def explain(self) -> str:
        """Explain in one sentence whether rows are run in batches, of which size, and why; it is decided now unless it was
        before.

        Raises:
            OpletError: the model cannot be opened.
        """
        with self._pool.lend() as lent:
            return f"{self._arguments.name} runs {self._pool.plan(lent)}."

    @property
    def batch_size(self) -> int:
        """The number of rows that run at once, 1 for row by row; it is decided now unless it was before.

        Raises:
            OpletError: the model cannot be opened.
        """
        with self._pool.lend() as lent:
            return self._pool.plan(lent).size

    # Life ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close all interpreters; those in use close at the end of their calls. Garbage collection closes them too."""
        self._pool.close()

    def __enter__(self) -> Predictor:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def __getstate__(self) -> Arguments:
        self._arguments.ensure_picklable()
        return self._arguments

    def __setstate__(self, state: Arguments) -> None:
        self._arguments = state
        self._pool = _pool_of(state)

    def __repr__(self) -> str:
        return f"<Predictor of {self._arguments.name}>"


def _copied(item: Any) -> Any:
    """Return a copy of an item, which later changes of its arrays do not reach; the item itself where it cannot be copied."""
    try:
        return copy.deepcopy(item)
    except Exception:
        return item


def _pool_of(arguments: Arguments) -> Pool:
    def open_for(size: int, with_delegates: bool = True) -> OpenedModel:
        return fresh_opened(arguments.open(with_delegates), arguments.signature, size)

    def decided(single: OpenedModel) -> BatchPlan:
        plan = decide(single, open_for, arguments.batch, bool(arguments.delegates))
        logger = logger_of("oplet.predictor")
        refused = arguments.batch not in (None, 1) and plan.size == 1
        (logger.warning if refused else logger.info)("%s runs %s.", arguments.name, plan)
        return plan

    return Pool(arguments.name, open_for, decided)
