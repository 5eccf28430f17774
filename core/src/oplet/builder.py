"""The public names for writing models: builders, enumerations, quantization and sparsity tables, packing of values.

Options tables are in `oplet.schema.options` and `oplet.schema.stablehlo_options`; docs/writing-models.md has examples.
"""

from __future__ import annotations

from oplet.model.builders.model_builder import ModelBuilder
from oplet.model.builders.operator_options import options_class
from oplet.model.builders.sparsity import Sparse, sparsify
from oplet.model.builders.subgraph_builder import SubgraphBuilder
from oplet.model.save.packing import pack_flexbuffer, pack_strings, pack_values
from oplet.schema.enums import BuiltinOperator, DimensionType, TensorType
from oplet.schema.tables import (
    BlockwiseQuantization,
    CustomQuantization,
    DimensionMetadata,
    MultiAxisQuantization,
    QuantizationParameters,
    SparsityParameters,
    VariantSubType,
)

__all__ = [
    "BlockwiseQuantization",
    "BuiltinOperator",
    "CustomQuantization",
    "DimensionMetadata",
    "DimensionType",
    "ModelBuilder",
    "MultiAxisQuantization",
    "QuantizationParameters",
    "Sparse",
    "SparsityParameters",
    "SubgraphBuilder",
    "TensorType",
    "VariantSubType",
    "options_class",
    "pack_flexbuffer",
    "pack_strings",
    "pack_values",
    "sparsify",
]
