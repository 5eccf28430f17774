"""STABLEHLO_GATHER: slices of a tensor at positions given by index vectors, clamped so that slices are inside of the tensor.

Numerics: tflite/kernels/stablehlo_gather.cc
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided

from oplet import Context, Node, Registration, charge, ensure, ensure_fits
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import PLAIN_TYPES, ensure_operands, ensure_plain, ensure_same_type
from oplet.schema.stablehlo_options import StablehloGatherOptions
from oplet_builtin_ops.shaping.index_vectors import ensure_index_vectors, index_vectors
from oplet_builtin_ops.stablehlo import attribute, ensure_axes


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2)
    source, indices = node.inputs
    output = node.outputs[0]
    ensure_plain(source)
    ensure_same_type(source, output)
    options = node.options(StablehloGatherOptions)
    sizes, mapped = attribute(options.slice_sizes), attribute(options.start_index_map)
    collapsed, offsets = attribute(options.collapsed_slice_dims), attribute(options.offset_dims)
    rule = f"slice_sizes {sizes} must be one size for each axis of {source}, none larger than the axis."
    ensure(len(sizes) == source.ndim and min(sizes, default=0) >= 0, rule)
    ensure_fits(all(size <= dim for size, dim in zip(sizes, source.shape)), rule)
    ensure_axes("collapsed_slice_dims", collapsed, source.ndim)
    ensure(all(sizes[axis] == 1 for axis in collapsed), f"slice_sizes {sizes} must be 1 along {collapsed}, which are collapsed.")
    ensure_axes("start_index_map", mapped, source.ndim)
    batch = ensure_index_vectors(indices, options.index_vector_dim, len(mapped))
    kept = [axis for axis in range(source.ndim) if axis not in collapsed]
    rank = len(batch) + len(kept)
    ensure_axes("offset_dims", offsets, rank)
    ensure(len(offsets) == len(kept), f"offset_dims {offsets} must name a place for each of the axes {kept} that are kept.")
    batch_axes = [axis for axis in range(rank) if axis not in offsets]
    # Slices fill the offset dimensions from the first to the last, in any order of the options.
    order = batch_axes + sorted(offsets)
    shape = [0] * rank
    for axis, size in zip(order, (*batch, *(sizes[axis] for axis in kept))):
        shape[axis] = size
    context.resize_tensor(output, shape)
    node.prepared = sizes, mapped, collapsed, order


def bind(context: Context, node: Node) -> Thunk:
    sizes, mapped, collapsed, order = node.prepared
    source, indices = (tensor.data for tensor in node.inputs)
    # Values are only copied: types that numpy has not are handled as integers of their size.
    bits = source.dtype if source.dtype.isbuiltin == 1 else np.dtype(f"u{source.dtype.itemsize}")
    source = source.view(bits)
    target = node.outputs[0].data.view(bits).transpose(order)
    room = [source.shape[axis] - sizes[axis] for axis in mapped]
    # A view of all slices inside of the tensor: first the axes of their start along the mapped axes, then those of the slices.
    strides = source.strides
    slices = as_strided(
        source,
        (*(most + 1 for most in room), *sizes),
        (*(strides[axis] for axis in mapped), *strides),
        writeable=False,
    )
    slices = np.squeeze(slices, tuple(len(mapped) + axis for axis in collapsed))
    vectors = index_vectors(indices, node.options(StablehloGatherOptions).index_vector_dim)
    most = np.array(room, np.int64)

    def run() -> None:
        charge(24 * vectors.size)  # the start indices as numpy's index arrays
        begins = np.clip(vectors, 0, most)
        target[...] = slices[tuple(np.moveaxis(begins, -1, 0))]

    return run if target.size else lambda: None


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=PLAIN_TYPES)
