"""More kinds of nodes for random graphs: late shapes, 16 bits, integer weights of float layers, and operators that move and compare."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from oplet import TensorType
from oplet.schema import options as o
from oplet.schema.enums import ActivationFunctionType, MirrorPadMode, Padding

if TYPE_CHECKING:
    from tests.random_graphs.generating import Maker, Value

__all__ = ["WIDER"]

_F32, _I8, _I16, _I32, _I64, _BOOL = "float32", "int8", "int16", "int32", "int64", "bool"


def _float(m: Maker, *, exact: bool = False, ranks: tuple[int, ...] = (1, 2, 3, 4)) -> Value | None:
    return m.some(lambda v: v.dtype == _F32 and len(v.shape) in ranks and v.exact >= exact)


def _unary(m: Maker) -> None:
    if (x := _float(m)) is None:
        return
    op = m.pick(["SQUARE", "SQRT", "RSQRT", "EXP", "LOG", "SIGN", "ZEROS_LIKE", "PRELU", "RELU_0_TO_1", "L2_NORMALIZATION"])
    if op in ("SQRT", "RSQRT", "LOG"):
        x = m.add("ADD", [m.add("ABS", [x], x), m.constant(1, _F32)], x, o.AddOptions())
    elif op == "EXP":
        x = m.add("MINIMUM", [x, m.constant(2, _F32)], x)
    elif (op == "SQUARE" and x.large > 1) or (op == "SIGN" and not x.exact):
        op = "RELU_0_TO_1"
    exact = x.exact and op in ("SIGN", "ZEROS_LIKE", "PRELU", "RELU_0_TO_1", "SQUARE")
    more = [m.constant(m.numbers(*x.shape[1:]), _F32)] if op == "PRELU" else []
    if op == "L2_NORMALIZATION":
        x = m.add("ADD", [m.add("ABS", [x], x), m.constant(1, _F32)], x, o.AddOptions())
    m.add(op, [x, *more], x._replace(exact=exact, large=x.large + (op == "SQUARE") * 2), None)


def _binary(m: Maker) -> None:
    if (x := _float(m)) is None:
        return
    op = m.pick(
        ["DIV", "SQUARED_DIFFERENCE", "FLOOR_DIV", "FLOOR_MOD", "POW", "NOT_EQUAL", "LESS_EQUAL", "GREATER_EQUAL", "ADD_N"]
    )
    shape = x.shape if m.chance(0.3) else x.shape[-1:] if m.chance(0.7) else ()
    other = m.constant(m.numbers(*shape) / 2 + 1, _F32)  # never 0
    if op == "ADD_N":
        m.add(op, [x, x, x], x._replace(exact=False, large=x.large + 2))
    elif op == "POW":
        m.add(op, [m.add("ABS", [x], x), m.constant(m.pick([0.5, 1, 2]), _F32)], x._replace(exact=False, large=x.large + 2))
    elif op == "DIV" or not x.exact:
        m.add(
            "DIV", [x, other], x._replace(exact=False, large=x.large + 1), o.DivOptions(fused_activation_function=m.activation())
        )
    elif op.startswith("FLOOR"):
        m.add(op, [x, other], x._replace(large=x.large + 1))
    elif op == "SQUARED_DIFFERENCE":
        m.add(op, [x, other], x._replace(exact=x.large < 2, large=x.large + 2))
    else:
        m.add(op, [x, other], x._replace(dtype=_BOOL, large=0))


def _logical(m: Maker) -> None:
    x = m.some(lambda v: v.dtype == _BOOL and len(v.shape) > 0)
    if x is None:
        return
    op = m.pick(["LOGICAL_NOT", "LOGICAL_AND", "LOGICAL_OR", "CAST", "REDUCE_ANY", "REDUCE_ALL"])
    if op == "CAST":
        types = o.CastOptions(in_data_type=TensorType.BOOL, out_data_type=TensorType.FLOAT32)
        m.add(op, [x], x._replace(dtype=_F32), types)
    elif op.startswith("REDUCE"):
        m.add(op, [x, m.constant([0], _I32)], x._replace(shape=x.shape[1:]), o.ReducerOptions())
    else:
        m.add(op, [x] if op == "LOGICAL_NOT" else [x, m.some(lambda v: v[1:3] == x[1:3])], x)


def _moving(m: Maker) -> None:
    if (x := _float(m)) is None:
        return
    rank = len(x.shape)
    axis = m.below(rank)
    rest = x.shape[:axis], x.shape[axis + 1 :]
    op = m.pick(
        ["REVERSE_V2", "UNPACK", "SQUEEZE", "SPLIT_V", "MIRROR_PAD", "PADV2", "ARG_MAX", "ARG_MIN", "GATHER_ND", "ONE_HOT"]
    )
    if op == "REVERSE_V2":
        m.add(op, [x, m.constant([axis], _I32)], x)
    elif op in ("UNPACK", "SPLIT_V") and 1 < x.shape[axis] < 9:
        parts = [1] * x.shape[axis] if op == "UNPACK" else [1, x.shape[axis] - 1]
        shapes = [(*rest[0], *([] if op == "UNPACK" else [part]), *rest[1]) for part in parts]
        made = [m.graph.add_tensor("t", _F32, list(shape)) for shape in shapes]
        if op == "UNPACK":
            m.graph.add_operator(op, [x.index], made, o.UnpackOptions(num=len(made), axis=axis))
        else:
            m.graph.add_operator(
                op, [x.index, m.constant(parts, _I32), m.constant(axis, _I32)], made, o.SplitVOptions(num_splits=2)
            )
        m.values += [x._replace(index=index, shape=shape) for index, shape in zip(made, shapes)]
    elif op == "SQUEEZE" and 1 in x.shape[1:]:
        at = x.shape.index(1, 1)
        m.add(
            op, [x], x._replace(shape=x.shape[:at] + x.shape[at + 1 :]), o.SqueezeOptions(squeeze_dims=np.array([at], np.int32))
        )
    elif op in ("MIRROR_PAD", "PADV2"):
        pads = m.random.integers(0, 2, (rank, 2)) * (np.arange(rank) > 0)[:, None] * (np.array(x.shape) > 1)[:, None]
        made_shape = tuple(int(size + sum(pair)) for size, pair in zip(x.shape, pads))
        more = [m.constant(m.numbers(), _F32)] if op == "PADV2" else []
        options = o.MirrorPadOptions(mode=m.pick(list(MirrorPadMode))) if op == "MIRROR_PAD" else o.PadV2Options()
        m.add(op, [x, m.constant(pads, _I32), *more], x._replace(shape=made_shape), options)
    elif op in ("ARG_MAX", "ARG_MIN") and x.exact:
        kind: Any = o.ArgMaxOptions if op == "ARG_MAX" else o.ArgMinOptions
        out = x._replace(dtype=_I32, shape=rest[0] + rest[1], large=1)
        m.add(op, [x, m.constant(axis, _I32)], out, kind(output_type=TensorType.INT32))
    elif op == "GATHER_ND":
        places = m.random.integers(0, x.shape[0], (3, 1))
        m.add(op, [x, m.constant(places, _I32)], x._replace(shape=(3, *x.shape[1:])))
    elif op == "ONE_HOT" and (chosen := m.some(lambda v: v.dtype == _I32 and len(v.shape) in (1, 2))) is not None:
        more = [m.constant(each, dtype) for each, dtype in ((5, _I32), (1.5, _F32), (-0.5, _F32))]
        m.add(op, [chosen, *more], x._replace(shape=(*chosen.shape, 5), exact=True, large=0), o.OneHotOptions(axis=-1))


def _images(m: Maker) -> None:
    if (x := _float(m, ranks=(4,))) is None:
        return
    rows, height, width, deep = x.shape
    op = m.pick(
        ["SPACE_TO_DEPTH", "DEPTH_TO_SPACE", "SPACE_TO_BATCH_ND", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "TRANSPOSE_CONV"]
    )
    if op == "SPACE_TO_DEPTH" and height % 2 == width % 2 == 0:
        out = x._replace(shape=(rows, height // 2, width // 2, deep * 4))
        m.add(op, [x], out, o.SpaceToDepthOptions(block_size=2))
    elif op == "DEPTH_TO_SPACE" and deep % 4 == 0:
        out = x._replace(shape=(rows, height * 2, width * 2, deep // 4))
        m.add(op, [x], out, o.DepthToSpaceOptions(block_size=2))
    elif op == "SPACE_TO_BATCH_ND" and height % 2 == width % 2 == 0:
        block, none = m.constant([2, 2], _I32), m.constant(np.zeros((2, 2)), _I32)
        made = m.add(op, [x, block, none], x._replace(shape=(rows * 4, height // 2, width // 2, deep)))
        m.add("BATCH_TO_SPACE_ND", [made, block, none], x)
    elif op.startswith("RESIZE"):
        sizes = [1 + m.below(7), 1 + m.below(7)]
        near = op == "RESIZE_NEAREST_NEIGHBOR"
        kind: Any = o.ResizeNearestNeighborOptions if near else o.ResizeBilinearOptions
        out = x._replace(shape=(rows, *sizes, deep), exact=x.exact and near)
        m.add(op, [x, m.constant(sizes, _I32)], out, kind(half_pixel_centers=m.chance(0.5)))
    elif op == "TRANSPOSE_CONV":
        shape = (rows, height * 2, width * 2, 3)
        weights = m.constant(m.numbers(3, 2, 2, deep) / 4, _F32)
        options = o.TransposeConvOptions(padding=Padding.SAME, stride_w=2, stride_h=2)
        m.add(op, [m.constant(shape, _I32), weights, x], x._replace(shape=shape, exact=False, large=x.large + 1), options)


def _late(m: Maker) -> None:
    """Shapes that are worked out of shapes, or of values."""
    if (x := _float(m)) is None:
        return
    sizes = m.add(
        "SHAPE",
        [x],
        x._replace(dtype=_I32, shape=(len(x.shape),), exact=True, large=9),
        o.ShapeOptions(out_type=TensorType.INT32),
    )
    op = m.pick(["FILL", "BROADCAST_TO", "RESHAPE", "WHERE", "RANGE"])
    if op == "FILL":
        m.add(op, [sizes, m.constant(m.numbers(), _F32)], x._replace(exact=True, large=0))
    elif op == "BROADCAST_TO":
        m.add(op, [m.constant(m.numbers(x.shape[-1]), _F32), sizes], x._replace(exact=True, large=0))
    elif op == "RESHAPE":
        flat = m.add(op, [x, m.constant([-1], _I32)], x._replace(shape=(prod(x.shape),)), o.ReshapeOptions())
        flat = m.add("NEG", [flat], flat)
        m.add(op, [flat, sizes], x, o.ReshapeOptions())
    elif op == "RANGE":
        many = m.add("REDUCE_PROD", [sizes, m.constant([0], _I32)], sizes._replace(shape=()), o.ReducerOptions())
        out = x._replace(dtype=_I32, shape=(prod(x.shape),), exact=True, large=9)
        counted = m.add(op, [m.constant(0, _I32), many, m.constant(1, _I32)], out)
        m.add(m.pick(["REDUCE_MAX", "SUM"]), [counted, m.constant([0], _I32)], out._replace(shape=()), o.ReducerOptions())
    elif x.exact:
        found = m.add("GREATER", [x, m.constant(m.numbers(), _F32)], x._replace(dtype=_BOOL, large=0), o.GreaterOptions())
        places = m.add(op, [found], x._replace(dtype=_I64, shape=(1, len(x.shape)), large=9))
        values = m.add("GATHER_ND", [x, places], x._replace(shape=(1,), exact=False))
        if m.chance(0.5):  # else others read it, whose number of rows a run decides
            m.values.remove(values)
        m.add("SUM", [values, m.constant([0], _I32)], x._replace(shape=(), exact=False, large=x.large + 2), o.ReducerOptions())


def _sixteen(m: Maker) -> None:
    """Quantization to 16 bits, with weights of 8."""
    x = m.some(lambda v: v.dtype == _I16)
    if x is None or m.chance(0.2):
        if (y := _float(m, exact=True)) is not None:
            m.add("QUANTIZE", [y], y._replace(dtype=_I16, scale=m.pick([2**-8, 2**-12]), large=0), o.QuantizeOptions())
        return
    op = m.pick(
        ["DEQUANTIZE", "ADD", "MUL", "TANH", "LOGISTIC", "SOFTMAX", "FULLY_CONNECTED", "CONV_2D", "MAX_POOL_2D", "RESHAPE"]
    )
    if op == "DEQUANTIZE":
        m.add(op, [x], x._replace(dtype=_F32, scale=0.0), o.DequantizeOptions())
    elif op in ("ADD", "MUL"):
        kind: Any = o.AddOptions if op == "ADD" else o.MulOptions
        m.add(
            op, [x, m.some(lambda v: v[1:3] == x[1:3])], x._replace(scale=2**-8), kind(fused_activation_function=m.activation())
        )
    elif op in ("TANH", "LOGISTIC", "SOFTMAX"):
        m.add(op, [x], x._replace(scale=2**-15), o.SoftmaxOptions(beta=1.0) if op == "SOFTMAX" else None)
    elif op == "RESHAPE":
        m.add(
            op, [x, m.constant([-1, x.shape[-1]], _I32)], x._replace(shape=(prod(x.shape[:-1]), x.shape[-1])), o.ReshapeOptions()
        )
    elif op == "MAX_POOL_2D":
        if len(x.shape) == 4:
            m.add(op, [x], x, o.Pool2DOptions(padding=Padding.SAME, stride_w=1, stride_h=1, filter_width=2, filter_height=2))
    elif len(x.shape) == (4 if op == "CONV_2D" else 2):
        units, kernel = m.pick([1, 3, 4, 8]), (1, 1) if op == "CONV_2D" else ()
        weights = m.constant(m.random.integers(-20, 21, (units, *kernel, x.shape[-1])), _I8, scale=[2**-5], zero_point=[0])
        bias = m.constant(m.random.integers(-999, 999, units), _I64, scale=[x.scale * 2**-5], zero_point=[0])
        options: Any = o.Conv2DOptions(stride_w=1, stride_h=1) if op == "CONV_2D" else o.FullyConnectedOptions()
        m.add(op, [x, weights, bias], x._replace(shape=(*x.shape[:-1], units), scale=2**-8), options)


def _hybrid(m: Maker) -> None:
    """Layers of floats whose weights are integers; what they read is exact, since they round it."""
    x = _float(m, exact=True, ranks=(2, 4))
    if x is None or x.large > 1:
        return
    units, conv = m.pick([2, 3, 4, 8]), len(x.shape) == 4
    type, most = (TensorType.INT4, 7) if m.chance(0.4) and x.shape[-1] % 2 == 0 and not conv else (TensorType.INT8, 127)
    values = m.random.integers(-most, most + 1, (units, *((1, 1) if conv else ()), x.shape[-1])).astype(np.int8)
    scales = [2**-6] * (units if conv or m.chance(0.5) else 1)
    weights = m.graph.add_tensor("c", type, values.shape, data=values, scale=scales, zero_point=[0] * len(scales))
    out = x._replace(shape=(*x.shape[:-1], units), exact=False, large=x.large + 1)
    bias = m.constant(m.numbers(units), _F32)
    options: Any = o.Conv2DOptions(stride_w=1, stride_h=1) if conv else o.FullyConnectedOptions()
    m.add("CONV_2D" if conv else "FULLY_CONNECTED", [x, weights, bias], out, options)


def _product(m: Maker) -> None:
    x = _float(m, ranks=(2, 3))
    if x is not None:
        right = m.constant(m.numbers(*x.shape[:-2], x.shape[-1], 3) if m.chance(0.5) else m.numbers(x.shape[-1], 3), _F32)
        m.add(
            "BATCH_MATMUL",
            [x, right],
            x._replace(shape=(*x.shape[:-1], 3), exact=False, large=x.large + 2),
            o.BatchMatMulOptions(),
        )


def _stateful(m: Maker) -> None:
    """A recurrent layer whose state is a variable tensor, for the rows that the file declares."""
    x = _float(m, ranks=(2, 3))
    if x is None:
        return
    op, units, deep = m.pick(["RNN", "SVDF"]) if len(x.shape) == 2 else "UNIDIRECTIONAL_SEQUENCE_RNN", 4, x.shape[-1]

    def state(*shape: int) -> int:
        return int(m.graph.add_tensor("state", _F32, list(shape), is_variable=True))

    bias, rows = m.constant(m.numbers(units), _F32), x.shape[0]
    inner = m.constant(m.numbers(units, 3 if op == "SVDF" else units) / 4, _F32)
    inputs = [x, m.constant(m.numbers(units, deep) / 4, _F32), inner, bias, state(rows, 3 * units if op == "SVDF" else units)]
    options: Any = {"RNN": o.RNNOptions, "SVDF": o.SVDFOptions}.get(op, o.SequenceRNNOptions)()
    options.fused_activation_function = ActivationFunctionType.RELU6
    if op == "SVDF":
        options.rank = 1
    m.add(op, inputs, x._replace(shape=(*x.shape[:-1], units), exact=False, large=0), options)


def _placing(m: Maker) -> None:
    """What puts values where others say."""
    if (x := _float(m, ranks=(2, 3))) is None:
        return
    rows = x.shape[0]
    op = m.pick(
        ["SCATTER_ND", "DYNAMIC_UPDATE_SLICE", "SEGMENT_SUM", "UNSORTED_SEGMENT_MAX", "REVERSE_SEQUENCE", "ATAN2", "BITCAST"]
    )
    if op == "SCATTER_ND":
        places, shape = m.constant(m.random.permutation(rows)[:, None], _I32), m.constant(x.shape, _I32)
        m.add(op, [places, x, shape], x, o.ScatterNdOptions())
    elif op == "DYNAMIC_UPDATE_SLICE":
        part = m.constant(m.numbers(1, *x.shape[1:]), _F32)
        m.add(op, [x, part, m.constant([m.below(rows), *[0] * (len(x.shape) - 1)], _I32)], x)
    elif op == "SEGMENT_SUM":
        m.add(op, [x, m.constant(np.arange(rows) // 2, _I32)], x._replace(shape=((rows + 1) // 2, *x.shape[1:]), exact=False))
    elif op == "UNSORTED_SEGMENT_MAX":
        m.add(
            op,
            [x, m.constant(np.arange(rows) % 2, _I32), m.constant(min(rows, 2), _I32)],
            x._replace(shape=(min(rows, 2), *x.shape[1:])),
        )
    elif op == "REVERSE_SEQUENCE":
        m.add(op, [x, m.constant(m.random.integers(1, x.shape[1] + 1, rows), _I32)], x, o.ReverseSequenceOptions(seq_dim=1))
    elif op == "ATAN2":
        m.add(op, [x, m.constant(m.numbers(*x.shape) / 2 + 1, _F32)], x._replace(exact=False, large=0))
    elif x.exact:
        m.add(op, [m.add(op, [x], x._replace(dtype=_I32, large=9))], x)


#: Makers of nodes, as often as they are drawn.
WIDER = [
    _unary,
    _binary,
    _logical,
    _moving,
    _moving,
    _images,
    _late,
    _late,
    _sixteen,
    _sixteen,
    _sixteen,
    _hybrid,
    _product,
    _stateful,
    _placing,
]
