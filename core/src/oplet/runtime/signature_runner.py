"""The signature runner: calls a model with inputs and outputs by the names of its signature."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from oplet.errors import SignatureError
from oplet.runtime.descriptions import details_of, ensure_usable, signatures_of, subgraph_of

if TYPE_CHECKING:
    from oplet.runtime.execution.model_runtime import HoldsRuntime

__all__ = ["SignatureRunner"]


class SignatureRunner:
    """Runs one signature; `Interpreter.get_signature_runner` returns it. Inputs and outputs are arrays by name.

    Examples:
        >>> runner = interpreter.get_signature_runner("serving_default")  # doctest: +SKIP
        >>> runner(x=np.zeros((1, 4), np.float32))["y"]  # doctest: +SKIP
    """

    def __init__(self, interpreter: HoldsRuntime | None = None, signature_key: str | None = None) -> None:
        if interpreter is None:
            raise SignatureError("None interpreter provided.")
        if not signature_key:
            raise SignatureError("None signature_key provided.")
        runtime = interpreter._runtime
        signatures = signatures_of(runtime.model)
        if signature_key not in signatures:
            known = ", ".join(f'"{key}"' for key in signatures) or "none"
            raise SignatureError(f'Invalid signature_key provided: "{signature_key}". The model has: {known}.')
        self._interpreter = interpreter
        self._runtime = runtime
        self._signature_key = signature_key
        self._inputs: Mapping[str, int] = signatures[signature_key]["inputs"]
        self._outputs: Mapping[str, int] = signatures[signature_key]["outputs"]
        self._subgraph_index = subgraph_of(runtime.model, signature_key)
        self._is_usable = False

    def __call__(self, /, **inputs: Any) -> dict[str, NDArray[Any]]:
        """Run the signature.

        Args:
            inputs: one array per input of the signature; its shape resizes the input.

        Returns:
            A copy of each output, by name.

        Raises:
            SignatureError: the number or a name of the inputs is wrong, or the signature names tensors that do not exist.
            TensorError: a value does not fit its input.
            StateError: another thread is using the interpreter.
        """
        if len(inputs) != len(self._inputs):
            raise SignatureError(
                f"Invalid number of inputs provided for running a SignatureDef, expected {len(self._inputs)} vs provided "
                f"{len(inputs)}. It takes: {', '.join(self._inputs)}."
            )
        for name in inputs:
            if name not in self._inputs:
                raise SignatureError(f"Invalid Input name ({name}) for SignatureDef. It takes: {', '.join(self._inputs)}.")
        runtime, subgraph = self._runtime, self._subgraph_index
        if not self._is_usable:
            self.ensure_usable()
        runtime.session.lock()  # so that no other thread sets inputs before they are read
        try:
            runtime.feed([(self._inputs[name], value) for name, value in inputs.items()], subgraph)
            runtime.invoke(subgraph)
            return {name: runtime.value(index, subgraph) for name, index in self._outputs.items()}
        finally:
            runtime.session.unlock()

    @property
    def subgraph_index(self) -> int:
        """The index of the subgraph that it runs."""
        return self._subgraph_index

    def ensure_usable(self) -> None:
        """Check, as a call does, that all tensors that the signature names exist in its subgraph.

        Raises:
            SignatureError: a tensor does not exist.
        """
        ensure_usable(self._runtime.model, self._signature_key)
        self._is_usable = True

    def get_input_details(self) -> dict[str, dict[str, Any]]:
        """Return the details of each input, by the signature's name for it."""
        return self._details(self._inputs)

    def get_output_details(self) -> dict[str, dict[str, Any]]:
        """Return the details of each output, by the signature's name for it."""
        return self._details(self._outputs)

    def _details(self, names: Mapping[str, int]) -> dict[str, dict[str, Any]]:
        model, subgraphs = self._runtime.model, self._runtime.subgraphs
        return {name: details_of(model, subgraphs, index, self._subgraph_index) for name, index in names.items()}
