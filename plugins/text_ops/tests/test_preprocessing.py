"""A model that the converter wrote from TensorFlow Text: strings to padded codes, with pieces, trimming, segments and padding."""

from __future__ import annotations

import numpy as np
from plugins.text_ops.tests.pieces import recorded, strings, unpacked

from oplet import Interpreter
from oplet_text_ops import OPS


def interpreter() -> Interpreter:
    return Interpreter(model_content=recorded()["preprocessing"].tobytes())


def test_a_preprocessing_model_gives_tensorflow_s_results() -> None:
    texts = unpacked("texts")[:60]
    answers = interpreter().get_signature_runner()(texts=strings(*texts))
    assert sorted(answers) == ["codes", "mask", "segments"]
    for name, answer in answers.items():
        np.testing.assert_array_equal(answer, recorded()[f"preprocessing_{name}"], err_msg=name)


def test_it_takes_one_text_after_another() -> None:
    run = interpreter().get_signature_runner()
    for number, text in enumerate(unpacked("texts")[:20]):
        answers = run(texts=strings(text))
        for name, answer in answers.items():
            np.testing.assert_array_equal(answer[0], recorded()[f"preprocessing_{name}"][number])


def test_all_its_custom_ops_are_served_by_this_package() -> None:
    names = {each["op_name"] for each in interpreter()._get_ops_details()} & set(OPS)
    assert names >= {"TFText>FastSentencepieceTokenize", "TFText>RoundRobinTrim", "RaggedGather", "RaggedTensorToTensor"}
