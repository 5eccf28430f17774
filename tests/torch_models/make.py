"""Makes models.zip: what PyTorch writes through litert-torch for operators whose bodies, types or shapes LiteRT is at odds with.

    python make.py

needs torch and litert-torch, which the tests do not. Each model NAME.tflite comes with NAME.npz: what it is fed (x0, x1, ...), in the
order of PyTorch's arguments, and what PyTorch answers (y0, ...). What does not convert is named on the way and left out.
"""

from __future__ import annotations

import io
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import litert_torch
import numpy as np
import torch
from torch.nn import functional

_RANDOM = torch.Generator().manual_seed(0)
Case = tuple[Callable[..., Any], tuple[torch.Tensor, ...]]


def reals(*shape: int) -> torch.Tensor:
    """Normally distributed values."""
    return torch.randn(*shape, generator=_RANDOM)


def ints(high: int, *shape: int) -> torch.Tensor:
    """Integers below `high`."""
    return torch.randint(0, high, shape, generator=_RANDOM)


class _Function(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *arguments: torch.Tensor) -> Any:
        return self.function(*arguments)


CASES: dict[str, Case] = {
    "scatter_0": (lambda a, i, s: a.scatter(0, i, s), (reals(5, 7), ints(5, 3, 7), reals(3, 7))),
    "scatter_1": (lambda a, i, s: a.scatter(1, i, s), (reals(5, 7), ints(7, 5, 4), reals(5, 4))),
    "scatter_value": (lambda a, i: a.scatter(1, i, 2.5), (reals(5, 7), ints(7, 5, 4))),
    "scatter_add": (lambda a, i, s: a.scatter_add(1, i, s), (reals(5, 7), ints(7, 5, 6), reals(5, 6))),
    "index_add": (lambda a, i, s: a.index_add(0, i, s), (reals(5, 7), torch.tensor([0, 4, 2, 4]), reals(4, 7))),
    "index_add_alpha": (lambda a, i, s: a.index_add(1, i, s, alpha=2.0), (reals(5, 7), torch.tensor([0, 4, 2, 4]), reals(5, 4))),
    "index_copy": (lambda a, i, s: a.index_copy(0, i, s), (reals(5, 7), torch.tensor([0, 4, 2]), reals(3, 7))),
    "index_fill": (lambda a, i: a.index_fill(0, i, 1.5), (reals(5, 7), torch.tensor([0, 4, 2]))),
    "index_put": (
        lambda a, i, j, s: a.index_put((i, j), s),
        (reals(5, 7), torch.tensor([0, 4, 2]), torch.tensor([1, 6, 2]), reals(3)),
    ),
    "index_put_accumulate": (
        lambda a, i, j, s: a.index_put((i, j), s, accumulate=True),
        (reals(5, 7), torch.tensor([0, 4, 0]), torch.tensor([1, 6, 1]), reals(3)),
    ),
    "index_put_rows": (lambda a, i, s: a.index_put((i,), s), (reals(5, 7), torch.tensor([0, 4]), reals(2, 7))),
    "index_put_bool": (lambda a, s: a.masked_fill(a > 0, 0.5) + s, (reals(5, 7), reals(7))),
    "fold": (lambda a: functional.fold(a, (6, 6), (2, 2), stride=2), (reals(1, 12, 9),)),
    "fold_overlap": (lambda a: functional.fold(a, (6, 6), (3, 3), padding=1, stride=2), (reals(1, 18, 9),)),
    "unfold": (lambda a: functional.unfold(a, (3, 3), padding=1, stride=2), (reals(1, 2, 6, 6),)),
    "unfold_dim": (lambda a: a.unfold(1, 3, 2), (reals(5, 7),)),
    "quantile_list": (lambda a, q: torch.quantile(a, q, dim=0), (reals(5, 7), torch.tensor([0.1, 0.5, 0.9]))),
    "nanquantile": (lambda a: torch.nanquantile(a, 0.4, dim=1), (reals(5, 7),)),
    "msort": (lambda a: torch.msort(a), (reals(5, 7),)),
    "topk": (lambda a: torch.topk(a, 3), (reals(5, 7),)),
    "topk_smallest": (lambda a: torch.topk(a, 3, largest=False), (reals(5, 7),)),
    "topk_0": (lambda a: torch.topk(a, 3, dim=0), (reals(5, 7),)),
    "cumsum": (lambda a: torch.cumsum(a, 1), (reals(5, 7),)),
    "prod": (lambda a: torch.prod(a, 1), (reals(5, 7),)),
    "prod_all": (lambda a: torch.prod(a), (reals(5, 7),)),
    "amax": (lambda a: torch.amax(a, (0, 2)), (reals(3, 4, 5),)),
    "any": (lambda a: torch.any(a > 1, 1), (reals(5, 7),)),
    "all": (lambda a: torch.all(a > -1), (reals(5, 7),)),
    "max_dim": (lambda a: torch.max(a, 1), (reals(5, 7),)),
    "min_dim": (lambda a: torch.min(a, 0), (reals(5, 7),)),
    "argmax": (lambda a: torch.argmax(a), (reals(5, 7),)),
    "aminmax": (lambda a: torch.aminmax(a, dim=1), (reals(5, 7),)),
    "logsumexp": (lambda a: torch.logsumexp(a, 1), (reals(5, 7),)),
    "var": (lambda a: torch.var(a, 1), (reals(5, 7),)),
    "count_nonzero": (lambda a: torch.count_nonzero(a > 0, 1), (reals(5, 7),)),
    "nansum": (lambda a: torch.nansum(a, 1), (reals(5, 7),)),
    "segment": (lambda a, i: torch.zeros(4, 7).index_add(0, i, a), (reals(5, 7), torch.tensor([0, 1, 1, 3, 0]))),
    "take": (lambda a, i: torch.take(a, i), (reals(5, 7), torch.tensor([3, 30, 8]))),
    "max_pool_indices": (lambda a: functional.max_pool2d(a, 2, return_indices=True), (reals(1, 2, 4, 4),)),
    "max_pool3d": (lambda a: functional.max_pool3d(a, 2), (reals(1, 2, 4, 4, 4),)),
    "avg_pool3d": (lambda a: functional.avg_pool3d(a, 2), (reals(1, 2, 4, 4, 4),)),
    "max_pool1d": (lambda a: functional.max_pool1d(a, 3, 2, 1), (reals(1, 2, 9),)),
    "max_unpool": (
        lambda a, i: functional.max_unpool2d(a, i, 2),
        (reals(1, 2, 2, 2), torch.tensor([[[[0, 2], [8, 10]], [[1, 3], [9, 11]]]])),
    ),
    "equal_uint8": (lambda a, b: a == b, (ints(5, 4, 5).to(torch.uint8), ints(5, 4, 5).to(torch.uint8))),
    "ge_int16": (lambda a, b: a >= b, (ints(5, 4, 5).to(torch.int16), ints(5, 4, 5).to(torch.int16))),
    "half_exp": (lambda a: torch.exp(a), (reals(4, 5).half(),)),
    "half_softmax": (lambda a: torch.softmax(a, -1), (reals(4, 5).half(),)),
    "half_mm": (lambda a, b: a @ b, (reals(4, 5).half(), reals(5, 3).half())),
    "half_mean": (lambda a: a.mean(1), (reals(4, 5).half(),)),
    "half_sum": (lambda a: a.sum(1), (reals(4, 5).half(),)),
    "bf16_exp": (lambda a: torch.exp(a), (reals(4, 5).bfloat16(),)),
    "double_add": (lambda a, b: a + b * 2, (reals(4, 5).double(), reals(4, 5).double())),
    "empty_reshape": (lambda a: a[:, :0].reshape(-1, 4), (reals(2, 4),)),
    "empty_cat": (lambda a: torch.cat([a[:0], a]), (reals(2, 4),)),
    "roll": (lambda a: torch.roll(a, (1, 2), (0, 1)), (reals(5, 7),)),
    "tril": (lambda a: torch.tril(a), (reals(5, 5),)),
    "repeat_interleave": (lambda a: a.repeat_interleave(2, 1), (reals(2, 4),)),
    "gather": (lambda a, i: torch.gather(a, 1, i), (reals(5, 7), ints(7, 5, 3))),
    "take_along": (lambda a, i: torch.take_along_dim(a, i, 0), (reals(5, 7), ints(5, 2, 7))),
    "grid_sample": (
        lambda a, b: functional.grid_sample(a, b, align_corners=False),
        (reals(1, 2, 5, 5), reals(1, 3, 3, 2).clamp(-1, 1)),
    ),
    "tc_pad": (lambda a, w: functional.conv_transpose2d(a, w, stride=2, padding=1), (reals(1, 2, 4, 4), reals(2, 3, 4, 4))),
    "tc_3d": (lambda a, w: functional.conv_transpose3d(a, w, stride=2), (reals(1, 2, 3, 3, 3), reals(2, 3, 2, 2, 2))),
    "tc_1d": (
        lambda a, w: functional.conv_transpose1d(a, w, stride=2, padding=1, output_padding=1),
        (reals(1, 2, 5), reals(2, 3, 3)),
    ),
}
for _reduce in ("sum", "prod", "mean", "amax", "amin"):
    for _self in (True, False):
        CASES[f"scatter_reduce_{_reduce}_{_self}"] = (
            lambda a, i, s, how=_reduce, own=_self: a.scatter_reduce(1, i, s, reduce=how, include_self=own),
            (reals(5, 7), ints(7, 5, 6), reals(5, 6)),
        )
for _q in (0.3, 0.5):
    CASES[f"quantile_{_q}"] = (lambda a, q=_q: torch.quantile(a, q, dim=1), (reals(5, 7),))
for _axes in ((0,), (0, 2), (1, 3), (0, 1, 2), (0, 2, 3), (0, 1, 2, 3), (-1, 1)):
    CASES[f"flip_{'_'.join(map(str, _axes))}"] = (lambda a, axes=_axes: torch.flip(a, axes), (reals(2, 3, 4, 2),))
for _op in ("exp", "sin", "cos", "tanh", "sigmoid", "neg", "erf", "expm1"):
    CASES[f"half_{_op}"] = (lambda a, op=_op: getattr(torch, op)(a), ((reals(4, 5).abs() + 0.1).half(),))


def answers(given: Any) -> list[np.ndarray]:
    """PyTorch's tensors as arrays; numpy has no bfloat16."""
    tensors = given if isinstance(given, tuple) else (given,)
    return [(tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy() for tensor in tensors]


def main() -> None:
    """Write the archive."""
    with zipfile.ZipFile(Path(__file__).with_name("models.zip"), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (function, arguments) in CASES.items():
            expected = answers(function(*arguments))
            try:
                converted = litert_torch.convert(_Function(function).eval(), arguments)
            except Exception as error:
                print(f"{name} does not convert: {type(error).__name__}", file=sys.stderr)
                continue
            path = Path(__file__).with_name(f"{name}.tflite")
            converted.export(str(path))
            archive.writestr(f"{name}.tflite", path.read_bytes())
            path.unlink()
            values = io.BytesIO()
            feeds = {f"x{i}": array for i, array in enumerate(answers(arguments))}
            np.savez(values, **feeds, **{f"y{i}": array for i, array in enumerate(expected)})
            archive.writestr(f"{name}.npz", values.getvalue())


if __name__ == "__main__":
    main()
