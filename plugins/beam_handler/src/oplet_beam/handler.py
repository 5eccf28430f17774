"""The model handler by which RunInference loads and runs a .tflite model."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.ml.inference.base import ModelHandler, PredictionResult

from oplet.errors import ModelError, TensorError
from oplet_beam.examples import byte_count
from oplet_beam.loaded import OpletModel
from oplet_predictor import Predictor

__all__ = ["OpletModelHandler"]


class OpletModelHandler(ModelHandler[Any, PredictionResult, OpletModel]):  # type: ignore[misc]  # Any to the checker
    """Runs a .tflite model in Beam's RunInference.

    An example is one row for each input of the model, without the dimension for the batch: for a model with one input a numpy
    array, else a mapping from the inputs' names to arrays. A pandas Series, or a DataFrame with one row, is such a mapping too;
    for a model with one input its columns, in their order, are the row's values unless one has the input's name. Arrays have
    exactly the input's dtype, nothing is cast; cells of pandas become the input's dtype where they are of the same kind and in
    its range.

    The inference of a `PredictionResult` is a mapping from the outputs' names to arrays, and its `model_id` the model's URI. The
    results of an example do not depend on how Beam batches it: the Predictor decides which rows run together.

    Args:
        model_uri: the model: a local path, or any address that Beam's FileSystems read, such as gs://bucket/model.tflite. A local
            file is mapped into memory by each worker that opens it, any other is read.
        delegates: the delegates of each interpreter: names, pairs (name, options), functions that make one, or "auto"; this and
            the next six are arguments of `oplet.Predictor`.
        num_threads: the number of threads of each interpreter.
        signature: the key of the signature; None for the only one, or the first subgraph.
        limits: the limits of each interpreter, `oplet.Limits`; None for the default ones.
        plugins: names of the plugins (packages of ops and delegates) to use; None for all that are installed.
        prefer: the package to take where several serve one op.
        batch: None to run rows in batches only where results keep the same bits; True, or the most rows of a batch, to do so also
            where floats may differ in their last bits; False or 1 for single rows.
        errors: "raise" fails Beam's whole batch if an example cannot be run, as other handlers do: `with_exception_handling` then
            gives the batch with the error. "return" puts the `OpletError` in the place of that example's inference, and runs the
            others.
        beam_options: what Beam's ModelHandler takes: min_batch_size, max_batch_size, max_batch_duration_secs, large_model,
            model_copies, env_vars and, depending on Beam's release, others.

    Raises:
        ModelError: `model_uri` is no path (a ValueError).
        TensorError: a number or `errors` is none of those allowed (a ValueError).
        DelegateError: `delegates` has an object that belongs to one interpreter.
        TypeError: Beam's ModelHandler has no such option.

    Examples:
        >>> from apache_beam.ml.inference.base import RunInference
        >>> from oplet_beam import OpletModelHandler
        >>> images | RunInference(OpletModelHandler("gs://models/mobilenet.tflite"))  # doctest: +SKIP
    """

    def __init__(
        self,
        model_uri: str | os.PathLike[str],
        *,
        delegates: Any = (),
        num_threads: int = 1,
        signature: str | None = None,
        limits: Any = None,
        plugins: Sequence[str] | None = None,
        prefer: Any = None,
        batch: int | bool | None = None,
        errors: Literal["raise", "return"] = "raise",
        **beam_options: Any,
    ) -> None:
        known = {*inspect.signature(ModelHandler.__init__).parameters, "env_vars"} - {"self", "kwargs"}
        unknown = sorted(set(beam_options) - known)
        if unknown:  # Beam's constructor lets them pass, and does nothing
            raise TypeError(
                f"OpletModelHandler and Beam's ModelHandler have no option {unknown[0]!r}; Beam's are {', '.join(sorted(known))}."
            )
        if errors not in ("raise", "return"):
            raise TensorError(f"errors is 'raise' or 'return', and not {errors!r:.80}.")
        super().__init__(**beam_options)
        self._model_uri = _uri(model_uri)
        self._errors: Literal["raise", "return"] = errors
        self._options: dict[str, Any] = {
            "delegates": delegates,
            "num_threads": num_threads,
            "signature": signature,
            "limits": limits,
            "plugins": plugins,
            "prefer": prefer,
            "batch": batch,
        }
        Predictor(self._model_uri, **self._options).close()  # what is wrong with the options shows here, not on a worker

    def load_model(self) -> OpletModel:
        """Open the model; called by Beam on each worker.

        Raises:
            ModelError: there is no such file, or it cannot be read.
            OpletError: the model cannot be opened.
        """
        return OpletModel(Predictor(_content(self._model_uri), **self._options), self._model_uri, self._errors)

    def run_inference(
        self, batch: Sequence[Any], model: OpletModel, inference_args: dict[str, Any] | None = None
    ) -> Iterable[PredictionResult]:
        """Run the model on a batch of examples; return the results in order.

        Args:
            batch: the examples, as the class describes them.
            model: the model that `load_model` returned, or Beam's proxy of it.
            inference_args: rows that all examples share, by the names of inputs that the examples leave out.

        Raises:
            OpletError: an example cannot be run, with `errors="raise"`; the message has its number in the batch.
        """
        inferences = model.run(batch, inference_args)
        return [PredictionResult(example, inference, self._model_uri) for example, inference in zip(batch, inferences)]

    def validate_inference_args(self, inference_args: dict[str, Any] | None) -> None:
        """Check, when the pipeline is built, that the arguments map input names to rows.

        Raises:
            TensorError: the arguments are no mapping, or a key is no string.
        """
        if inference_args is None:
            return
        if not isinstance(inference_args, Mapping):
            raise TensorError(f"inference_args is a mapping from names of inputs to rows, and not {inference_args!r:.80}.")
        for name in inference_args:
            if not isinstance(name, str):
                raise TensorError(f"inference_args has rows by names of inputs, and {name!r:.80} is no name.")

    def update_model_path(self, model_path: str | None = None) -> None:
        """Switch to another model; None and "" keep the present one."""
        if model_path:
            self._model_uri = _uri(model_path)

    def get_num_bytes(self, batch: Sequence[Any]) -> int:
        """Return the bytes of the examples' values."""
        return sum(map(byte_count, batch))

    def get_metrics_namespace(self) -> str:
        """Return the namespace of the metrics, "BeamML_Oplet"."""
        return "BeamML_Oplet"


def _uri(model: object) -> str:
    if isinstance(model, (str, os.PathLike)) and isinstance(uri := os.fspath(model), str) and uri:
        # A worker's current folder is its own.
        return uri if FileSystems.get_scheme(uri) else os.path.abspath(uri)
    raise ModelError(f"OpletModelHandler takes the path or address of a model, which {model!r:.80} is not.")


def _content(uri: str) -> str | bytes:
    """Return a local model's path, or the bytes of a remote model."""
    if FileSystems.get_scheme(uri) is None:
        return uri
    try:
        with FileSystems.open(uri, compression_type=CompressionTypes.UNCOMPRESSED) as file:
            content = bytes(file.read())
    except (OSError, ValueError, ImportError) as error:  # Beam's BeamIOError is an OSError
        raise ModelError(
            f"The model '{uri}' cannot be read by Beam's FileSystems ({error}); check the address and the worker's rights."
        ) from error
    if not content:
        raise ModelError(f"The model '{uri}' is empty.")
    return content
