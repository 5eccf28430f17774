"""Everything about a one-node model that can be turned, one by one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from tests.delegate_sweep.drafts import Draft, Edit

from oplet import BuiltinOperator, TensorType
from oplet.model.builders.operator_options import options_class
from oplet.ops.tensor import numpy_dtype
from oplet.schema.table import Field
from oplet_builtin_ops import VERSIONS
from oplet_testing.one_op import Spec

__all__ = ["edits"]

_T = TensorType
_TYPES = (
    _T.FLOAT32, _T.FLOAT16, _T.BFLOAT16, _T.FLOAT64, _T.INT8, _T.UINT8, _T.INT16, _T.UINT16, _T.INT32, _T.UINT32, _T.INT64, _T.UINT64,
    _T.BOOL, _T.COMPLEX64, _T.COMPLEX128, _T.STRING, _T.INT4, _T.INT2,
)  # fmt: skip
_MAY_SCALE = (_T.INT8, _T.UINT8, _T.INT16, _T.INT4, _T.INT32)
_NUMBERS = (0, -1, 1, 2, 3, 7, 1 << 20, 2**31 - 1, -(2**31))
_FLOATS = (0.0, -1.0, 1.0, 1e-38, 3e38, float("inf"), float("-inf"), float("nan"))
_INDICES = (0, -1, 1, 2, 4, 2**31 - 1, -(2**31))
#: Elements of a constant.
_MOST = 1 << 16
_SCALES = (1e-12, 1e-5, 0.003, 1.0, 300.0, 1e12)

Named = tuple[str, Edit]


def edits(draft: Draft) -> dict[str, list[Named]]:
    """All single changes of a draft, by their kind."""
    return {
        "options": list(_options(draft)),
        "version": list(_versions(draft)),
        "rank": list(_ranks(draft)),
        "size": list(_sizes(draft)),
        "type": list(_types(draft)),
        "scale": list(_scales(draft)),
        "constant": list(_constants(draft)),
        "operands": list(_operands(draft)),
        "values": list(_values(draft)),
    }


def _options(draft: Draft) -> Iterator[Named]:
    cls = options_class(BuiltinOperator[draft.op])
    if cls is None:
        return
    if draft.options is not None:
        yield "no options", lambda d: setattr(d, "options", None)
    for field in cls.fields:
        for value in _field_values(field, getattr(draft.options, field.name, None)):

            def change(d: Draft, name: str = field.name, value: Any = value) -> None:
                if d.options is None:
                    d.options = cls()
                setattr(d.options, name, value)

            yield f"{field.name}={value}", change


def _field_values(field: Field, now: Any) -> list[Any]:
    if field.kind == "scalar":
        if field.number == "bool":
            return [True, False]
        if field.number == "float32":
            return list(_FLOATS)
        if field.enum is not None:
            return list(field.enum)
        low, high = int(np.iinfo(field.dtype).min), int(np.iinfo(field.dtype).max)
        return [value for value in _NUMBERS if low <= value <= high]
    if field.kind == "vector":
        array = np.zeros(0, field.dtype) if now is None else np.array(now, field.dtype)
        found = [None, array[:-1], np.concatenate([array, array[:1]])]
        values = _FLOATS if field.dtype.kind == "f" else (0, 1) if field.dtype.kind == "b" else _NUMBERS
        if field.dtype.kind in "iu":
            values = [value for value in _NUMBERS if np.iinfo(field.dtype).min <= value <= np.iinfo(field.dtype).max]
        for place in range(array.size):
            for value in values:
                changed = array.copy()
                changed[place] = value
                found.append(changed)
        found += [np.full(max(array.size, 1), value, field.dtype) for value in values]
        return found
    return []


def _versions(draft: Draft) -> Iterator[Named]:
    low, high = VERSIONS[draft.op]
    for version in range(low, high + 1):
        if version != draft.version:
            yield f"version {version}", lambda d, version=version: setattr(d, "version", version)  # type: ignore[misc]


def _shaped(spec: Spec, shape: tuple[int, ...]) -> Spec:
    """The tensor in another shape, a constant's values repeated or cut."""
    if spec.data is None:
        return spec._replace(shape=shape)
    _small(spec._replace(shape=shape))
    flat = np.asarray(spec.data).ravel()
    return spec._replace(shape=shape, data=np.resize(flat, shape) if flat.size else np.zeros(shape, flat.dtype))


def _small(spec: Spec) -> Spec:
    """The tensor, which is to be a constant of a small file."""
    if math.prod(spec.shape) > _MOST:
        raise ValueError("a file of its own")
    return spec


def _ranks(draft: Draft) -> Iterator[Named]:
    most = max((len(spec.shape) for spec in draft.tensors), default=0)
    for rank in range(11):
        for fill in (1, 2):
            if rank > most and (fill == 1 or rank < 8):

                def grow(d: Draft, rank: int = rank, fill: int = fill) -> None:
                    for i, spec in enumerate(d.tensors):
                        if len(spec.shape) == most or (fill == 1 and spec.data is None and len(spec.shape) > 1):
                            d.tensors[i] = _shaped(spec, (*[fill] * (rank - most), *spec.shape))

                yield f"rank {rank} of {fill}", grow

                def grow_axes(d: Draft, rank: int = rank, fill: int = fill) -> None:
                    """Vectors with an element per dimension, too."""
                    for i, spec in enumerate(d.tensors):
                        if len(spec.shape) == most and most > 1:
                            d.tensors[i] = _shaped(spec, (*[fill] * (rank - most), *spec.shape))
                        elif spec.data is not None and spec.shape in ((most,), (most, 2)):
                            rows = np.resize(np.asarray(spec.data)[:1], (rank - most, *spec.shape[1:]))
                            d.tensors[i] = spec._replace(shape=(rank, *spec.shape[1:]), data=np.concatenate([rows, spec.data]))

                yield f"rank {rank} of {fill} with axes", grow_axes

                def alternate(d: Draft, rank: int = rank) -> None:
                    """Shapes that are broadcast in every other dimension."""
                    for i, spec in enumerate(d.tensors):
                        even = i % 2 == 0 or i in d.outputs
                        d.tensors[i] = _shaped(
                            spec, tuple(2 if (k % 2 == 0) == even or i in d.outputs else 1 for k in range(rank))
                        )

                yield f"rank {rank} alternating", alternate
        if rank < most:

            def shrink(d: Draft, rank: int = rank) -> None:
                for i, spec in enumerate(d.tensors):
                    d.tensors[i] = _shaped(spec, spec.shape[max(len(spec.shape) - rank, 0) :])

            yield f"rank {rank} at most", shrink
    for place, spec in enumerate(draft.tensors):
        for shape in ((), (1,), (1, *spec.shape), (2, *spec.shape), spec.shape[1:], (*spec.shape, 1), (1,) * 6 + spec.shape):
            if shape != spec.shape:

                def one(d: Draft, place: int = place, shape: tuple[int, ...] = shape) -> None:
                    d.tensors[place] = _shaped(d.tensors[place], shape)

                yield f"t{place} {list(shape)}", one


def _sizes(draft: Draft) -> Iterator[Named]:
    for old in sorted({dim for spec in draft.tensors for dim in spec.shape}):
        for new in (0, 1, old + 1, 2 * old, 17, 300, 70_000):
            if new != old:

                def everywhere(d: Draft, old: int = old, new: int = new) -> None:
                    for i, spec in enumerate(d.tensors):
                        d.tensors[i] = _shaped(spec, tuple(new if dim == old else dim for dim in spec.shape))

                yield f"dimensions {old} are {new}", everywhere
    for place, spec in enumerate(draft.tensors):
        for axis in range(len(spec.shape)):
            for new in (0, 1, 2, spec.shape[axis] + 1, 70_000):
                if new != spec.shape[axis] and (new < 100 or spec.data is None):

                    def one(d: Draft, place: int = place, axis: int = axis, new: int = new) -> None:
                        shape = list(d.tensors[place].shape)
                        if axis < len(shape):
                            shape[axis] = new
                        d.tensors[place] = _shaped(d.tensors[place], tuple(shape))

                    yield f"t{place} dimension {axis} is {new}", one


def _typed(spec: Spec, type: TensorType, scale: float | None = None) -> Spec:
    """The tensor with another type, a constant's values converted."""
    zero = None if scale is None else 128 if type is _T.UINT8 else 0
    if spec.data is None:
        return spec._replace(type=type, scale=scale, zero_point=zero, sparsity=None)
    if type is _T.STRING:
        data = np.full(spec.shape, b"ab", object)
    else:
        with np.errstate(all="ignore"):
            data = np.asarray(spec.data)
            data = np.ones(spec.shape) if data.dtype.hasobject else data
            low, high = {_T.INT4: (-8, 7), _T.INT2: (-2, 1)}.get(type, (-(2**31), 2**31 - 1))
            data = np.clip(data.real, low, high).astype(numpy_dtype(type))
    return spec._replace(type=type, scale=scale, zero_point=zero, data=data, sparsity=None)


def _types(draft: Draft) -> Iterator[Named]:
    for old in dict.fromkeys(spec.type for spec in draft.tensors):
        for new in _TYPES:
            for scale in (None, 0.05, 1 / 256) if new in _MAY_SCALE else (None,):
                if new is old and scale is None:
                    continue

                def everywhere(d: Draft, old: TensorType = old, new: TensorType = new, scale: float | None = scale) -> None:
                    for i, spec in enumerate(d.tensors):
                        if spec.type is old:
                            d.tensors[i] = _typed(spec, new, scale)

                yield f"{old.name} are {new.name} {scale}", everywhere
    for place in range(len(draft.tensors)):
        for new in _TYPES:
            for scale in (None, 0.05) if new in _MAY_SCALE else (None,):

                def one(d: Draft, place: int = place, new: TensorType = new, scale: float | None = scale) -> None:
                    d.tensors[place] = _typed(d.tensors[place], new, scale)

                yield f"t{place} is {new.name} {scale}", one


def _scales(draft: Draft) -> Iterator[Named]:
    for place, spec in enumerate(draft.tensors):
        if spec.type not in _MAY_SCALE:
            continue
        for scale in _SCALES:
            yield f"t{place} scale {scale}", _replacing(place, scale=scale, zero_point=0)
        for zero in (-129, -128, 1, 127, 255, 40000, -(2**31), 2**31 - 1):
            yield f"t{place} zero point {zero}", _replacing(place, scale=0.05, zero_point=zero)
        yield f"t{place} no scale", _replacing(place, scale=None, zero_point=None)
        for axis, dim in enumerate(spec.shape):
            if dim < 100:
                scales = [0.01 * (i + 1) for i in range(dim)]
                yield f"t{place} scales by {axis}", _replacing(place, scale=scales, zero_point=[0] * dim, axis=axis)

    def alike(d: Draft) -> None:
        for i, spec in enumerate(d.tensors):
            if spec.type in _MAY_SCALE:
                d.tensors[i] = spec._replace(scale=0.05, zero_point=0)

    yield "scales alike", alike


def _replacing(place: int, **values: Any) -> Edit:
    def change(d: Draft) -> None:
        d.tensors[place] = d.tensors[place]._replace(**values)

    return change


def _constants(draft: Draft) -> Iterator[Named]:
    for place in dict.fromkeys(i for i in draft.inputs if i is not None):
        spec = draft.tensors[place]
        if spec.data is not None:
            yield f"t{place} fed", _replacing(place, data=None, sparsity=None)
        else:
            for fill in (0, 1):

                def fix(d: Draft, place: int = place, fill: int = fill) -> None:
                    now = _small(d.tensors[place])
                    data = np.full(now.shape, b"ab" if now.type is _T.STRING else fill, numpy_dtype(now.type))
                    d.tensors[place] = now._replace(data=data, variable=False)

                yield f"t{place} constant {fill}", fix
        yield f"t{place} variable", _replacing(place, data=None, sparsity=None, variable=not spec.variable)

    def all_fixed(d: Draft) -> None:
        for i in (i for i in d.inputs[1:] if i is not None):
            spec = _small(d.tensors[i])
            if spec.data is None and not spec.variable:
                d.tensors[i] = spec._replace(
                    data=np.full(spec.shape, b"a" if spec.type is _T.STRING else 1, numpy_dtype(spec.type))
                )

    yield "all but the first constant", all_fixed


def _operands(draft: Draft) -> Iterator[Named]:
    count = len(draft.inputs)
    for position in range(count):
        yield f"input {position} left out", lambda d, p=position: d.inputs.__setitem__(slice(p, p + 1), [None])  # type: ignore[misc]
        yield f"inputs up to {position}", lambda d, p=position: d.inputs.__delitem__(slice(p, None))  # type: ignore[misc]
        for other in range(position):
            if draft.inputs[other] is not None:

                def share(d: Draft, position: int = position, other: int = other) -> None:
                    d.inputs[position] = d.inputs[other]

                yield f"input {position} is input {other}", share
    if count:
        yield "the last input again", lambda d: d.inputs.append(d.inputs[-1])

        def more(d: Draft) -> None:
            d.inputs += [d.inputs[0]] * 40

        yield "forty inputs more", more
    for position in range(len(draft.outputs)):
        yield f"outputs up to {position}", lambda d, p=position: d.outputs.__delitem__(slice(p, None))  # type: ignore[misc]

    def another(d: Draft) -> None:
        d.tensors.append(d.tensors[d.outputs[-1]])
        d.outputs.append(len(d.tensors) - 1)

    if draft.outputs:
        yield "an output more", another


def _values(draft: Draft) -> Iterator[Named]:
    for place, spec in enumerate(draft.tensors):
        if spec.data is None or not np.size(spec.data) or spec.sparsity is not None:
            continue
        kind = np.asarray(spec.data).dtype.kind
        if kind not in "iuf":
            continue
        for value in _FLOATS if kind == "f" else _INDICES:

            def fill(d: Draft, place: int = place, value: Any = value) -> None:
                data = np.asarray(d.tensors[place].data)
                d.tensors[place] = d.tensors[place]._replace(data=np.full(data.shape, value).astype(data.dtype))

            yield f"t{place} all {value}", fill
            if np.size(spec.data) > 1 and np.size(spec.data) < 12 and kind != "f":
                for at in range(np.size(spec.data)):

                    def set_one(d: Draft, place: int = place, value: Any = value, at: int = at) -> None:
                        data = np.array(d.tensors[place].data)
                        if at < data.size:
                            data.reshape(-1)[at] = np.asarray(value).astype(data.dtype)
                        d.tensors[place] = d.tensors[place]._replace(data=data)

                    yield f"t{place}[{at}]={value}", set_one
