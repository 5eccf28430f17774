"""The opened model on a worker, shared by its threads or, through Beam's proxies, by processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from oplet.errors import OpletError
from oplet_beam.examples import with_shared, without_pandas
from oplet_predictor import Predictor

__all__ = ["OpletModel"]


class OpletModel:
    """An opened model, returned by `OpletModelHandler.load_model`.

    Beam may share an instance among processes (large_model, model_copies) and calls its methods through a proxy, with pickled
    values, so `run` returns a list and no iterator.

    Args:
        predictor: the model.
        uri: where the model came from.
        errors: "raise" to raise the error of an example that cannot be run; "return" to give the error as its result.

    Raises:
        OpletError: the model cannot be opened.
    """

    def __init__(self, predictor: Predictor, uri: str, errors: Literal["raise", "return"]) -> None:
        self._predictor = predictor
        self._uri = uri
        self._errors: Literal["raise", "return"] = errors
        self._inputs = predictor.inputs

    def run(self, examples: Sequence[Any], shared: Mapping[str, Any] | None = None) -> list[dict[str, Any] | OpletError]:
        """Run the examples; return for each a mapping of output names to arrays, or with `errors="return"` its error.

        Args:
            examples: the examples, as `OpletModelHandler` takes them.
            shared: rows that all examples share, by name.

        Raises:
            OpletError: an example cannot be run, with `errors="raise"`.
        """
        items: list[Any] = []
        refused: dict[int, OpletError] = {}
        for number, example in enumerate(examples):
            try:
                items.append(
                    with_shared(self._inputs, without_pandas(self._inputs, example), {} if shared is None else shared, self._uri)
                )
            except OpletError as error:
                error.args = (f"item {number}: {error}",)
                if self._errors == "raise":
                    raise
                refused[number] = error
                items.append({})  # it keeps the others' numbers, and has an error of its own that nobody sees
        inferences = self._predictor.map(items, errors=self._errors)
        return [refused.get(number, inference) for number, inference in enumerate(inferences)]
