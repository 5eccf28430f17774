"""CaseFoldUTF8 and NormalizeUTF8: NFKC case folding that drops default-ignorable code points, and Unicode normalization by the option
`normalization_form`: NFC, NFD, NFKC or NFKD.

The input is strings of any shape, the output strings of that shape. Bytes that are not UTF-8 stay.

Numerics: core/kernels/normalize_kernels.cc of tensorflow/text, with ICU 77 (Unicode 16).
"""

from __future__ import annotations

from functools import partial

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands
from oplet_text_ops.attributes import options_of
from oplet_text_ops.nodes import each_text, string_vector
from oplet_text_ops.texts.normalization import FORMS, case_fold, normalize


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1)
    ensure_type(node.inputs[0], TensorType.STRING)
    ensure_type(node.outputs[0], TensorType.STRING)
    if node.op_name.endswith("CaseFoldUTF8"):
        node.prepared = case_fold
    else:
        form = options_of(node).get("normalization_form", "NFKC")
        ensure(form in FORMS, lambda: f"the option 'normalization_form' is {form!r:.60}; it must be one of {', '.join(FORMS)}.")
        node.prepared = partial(normalize, form=form)
    context.resize_tensor(node.outputs[0], node.inputs[0].shape)


def bind(context: Context, node: Node) -> Thunk:
    source, output, change = node.inputs[0].data, node.outputs[0].data, node.prepared

    def run() -> None:
        output[...] = string_vector(each_text(change, source.ravel().tolist())).reshape(output.shape)

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(TensorType.STRING,))
