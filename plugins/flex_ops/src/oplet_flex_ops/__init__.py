"""TensorFlow's operators that models with SELECT_TF_OPS use most, in numpy. A model names them `Flex` and the operator's name.

Each is one module of a family in `oplet_flex_ops.ops`, which is imported when a model needs it.
"""

from __future__ import annotations

from oplet import MutableOpResolver, hookimpl

#: The version of oplet's plugin API that this package is written for.
OPLET_API = "1"

#: The module of each operator, by family; several small operators may share a module: "module:NAME". All are of version 1.
OPS: dict[str, dict[str, str]] = {
    "arrays": {},
    "arithmetic": {},
    "gradients": {},
    "images": {},
    "linalg": {},
    "lookup": {},
    "ragged": {},
    "random": {},
    "sequences": {},
    "signal": {},
    "sparse": {},
    "strings": {},
    "tensor_list": {
        "EmptyTensorList": "making:EMPTY",
        "TensorListConcat": "concat",
        "TensorListConcatLists": "concat_lists",
        "TensorListConcatV2": "concat",
        "TensorListElementShape": "sizes:ELEMENT_SHAPE",
        "TensorListFromTensor": "making:FROM_TENSOR",
        "TensorListGather": "stacking:GATHER",
        "TensorListGetItem": "items:GET",
        "TensorListLength": "sizes:LENGTH",
        "TensorListPopBack": "ends:POP",
        "TensorListPushBack": "ends:PUSH",
        "TensorListPushBackBatch": "ends:PUSH_BATCH",
        "TensorListReserve": "making:RESERVE",
        "TensorListResize": "sizes:RESIZE",
        "TensorListScatter": "scatter",
        "TensorListScatterIntoExistingList": "scatter:INTO",
        "TensorListScatterV2": "scatter",
        "TensorListSetItem": "items:SET",
        "TensorListSplit": "split",
        "TensorListStack": "stacking:STACK",
    },
    "volumes": {},
}

#: Operators that the converter writes under their own name, as they are not on its list of Flex operators.
UNPREFIXED = ("BesselI0e", "BesselI1e", "Erfinv", "Svd")


@hookimpl
def register_ops(resolver: MutableOpResolver) -> None:
    """Register the operators, under the names that models call them."""
    for family, ops in OPS.items():
        for op, module in ops.items():
            target = f"{__name__}.ops.{family}.{module}" + ("" if ":" in module else ":REGISTRATION")
            resolver.add_custom(f"Flex{op}", target)
            if op in UNPREFIXED:
                resolver.add_custom(op, target)
