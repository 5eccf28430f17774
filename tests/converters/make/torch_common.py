"""What the makers of PyTorch models share: seeded inputs, and the way through litert-torch."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import litert_torch
import numpy as np
import torch
from torch import nn
from torch.utils import _pytree as pytree

from ..cases import Case, Step
from ..files import fit_inputs

__all__ = ["Net", "Spec", "array_of", "convert", "flags", "floats", "function", "integers", "samples", "seed"]


class Spec(NamedTuple):
    """An input: how its values are drawn."""

    shape: tuple[int, ...]
    kind: str = "float"
    high: int = 0
    dtype: Any = torch.float32

    def draw(self, generator: torch.Generator) -> torch.Tensor:
        """Values of the shape."""
        if self.kind == "integer":
            return torch.randint(0, self.high, self.shape, generator=generator).to(self.dtype)
        if self.kind == "flag":
            return torch.rand(self.shape, generator=generator) > 0.5
        return torch.randn(self.shape, generator=generator).to(self.dtype)


def floats(*shape: int, dtype: Any = torch.float32) -> Spec:
    """Normal values."""
    return Spec(shape, dtype=dtype)


def integers(high: int, *shape: int, dtype: Any = torch.int32) -> Spec:
    """Whole numbers from 0 to below `high`."""
    return Spec(shape, "integer", high, dtype)


def flags(*shape: int) -> Spec:
    """Booleans."""
    return Spec(shape, "flag")


class Net(NamedTuple):
    """A module and its inputs."""

    make: Callable[[], nn.Module]
    inputs: Sequence[Spec]
    options: dict[str, Any] = {}  # noqa: RUF012  # of litert_torch.convert; never written


class _Function(nn.Module):
    def __init__(self, compute: Callable[..., Any]) -> None:
        super().__init__()
        self.compute = compute

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.compute(*inputs)


def function(compute: Callable[..., Any], *inputs: Spec) -> Net:
    """A net that is one function of its inputs."""
    return Net(lambda: _Function(compute), inputs)


def seed(name: str) -> int:
    """The seed that goes with a name."""
    return zlib.crc32(name.encode())


def samples(name: str, specs: Sequence[Spec], count: int = 2) -> list[tuple[torch.Tensor, ...]]:
    """Inputs of a net, `count` times, the same whenever they are drawn."""
    generator = torch.Generator().manual_seed(seed(name))
    return [tuple(spec.draw(generator) for spec in specs) for _ in range(count)]


def _spread(module: nn.Module, generator: torch.Generator) -> None:
    """Give biases, norms and running statistics values that a trained net might have; zeros and ones would hide mistakes."""
    with torch.no_grad():
        for child in module.modules():
            for key, value in [*child.named_parameters(recurse=False), *child.named_buffers(recurse=False)]:
                if not value.is_floating_point() or value.ndim != 1:
                    continue
                noise = torch.randn(value.shape, generator=generator)
                if key.endswith("var"):
                    value.copy_(1 + 0.2 * noise.abs())
                elif key == "weight" and "norm" in type(child).__name__.lower():
                    value.copy_(1 + 0.1 * noise)
                elif "bias" in key or key.endswith("mean"):
                    value.copy_(0.1 * noise)


def convert(name: str, net: Net) -> Case:
    """The net, converted, with two inputs and PyTorch's own answers."""
    torch.manual_seed(seed(name))
    module = net.make().eval()
    _spread(module, torch.Generator().manual_seed(seed(name) + 1))
    drawn = samples(name, net.inputs)
    with torch.no_grad():
        answers = [pytree.tree_flatten(module(*inputs))[0] for inputs in drawn]
    edge = litert_torch.convert(module, drawn[0], **net.options)
    steps = [
        Step(
            {f"args_{index}": array_of(value) for index, value in enumerate(inputs)},
            {"own": {f"output_{index}": array_of(value) for index, value in enumerate(outputs)}},
            "serving_default",
        )
        for inputs, outputs in zip(drawn, answers)
    ]
    model = edge.model_content()
    fit_inputs(model, steps)
    return Case(name, "litert-torch", model, steps)


def array_of(value: torch.Tensor) -> np.ndarray[Any, Any]:
    """The values in numpy."""
    return np.ascontiguousarray(value.detach().cpu().numpy())
