"""Record what TensorFlow Text's FastSentencepiece ops give: `python -m plugins.text_ops.tests.record_sentencepiece TEXTS`.

TEXTS is a file with a sentence a line, of many languages. It needs sentencepiece, tensorflow and tensorflow-text. The models are
trained on those sentences: one with the normalization that models have by default, and small ones with other settings.
"""

from __future__ import annotations

import io
import lzma
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
from plugins.text_ops.tests.pieces import DATA, FLAGS, packed, random_texts

#: The settings of the trainer for each model.
MODELS: dict[str, dict[str, Any]] = {
    "default": {"vocab_size": 1200},
    "plain": {"vocab_size": 700, "normalization_rule_name": "identity"},
    "spaces": {
        "vocab_size": 700, "normalization_rule_name": "identity", "add_dummy_prefix": False, "remove_extra_whitespaces": False,
        "user_defined_symbols": ["<mask>", "\u2581\u2581", "a\u2581b"], "bos_id": -1, "split_by_whitespace": False,
    },
    "pairs": {"vocab_size": 800, "normalization_rule_name": "identity", "model_type": "bpe"},
    "suffixes": {"vocab_size": 700, "normalization_rule_name": "identity", "treat_whitespace_as_suffix": True},
}  # fmt: skip


def trained(lines: list[str], settings: dict[str, Any]) -> bytes:
    """A sentencepiece model of the lines."""
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, minloglevel=2, character_coverage=0.98, **settings
    )
    return model.getvalue()


def preprocessing(proto: bytes, texts: list[bytes]) -> dict[str, Any]:
    """A model of TensorFlow's converter from texts to padded codes, masks and numbers of segments, and what TensorFlow gives for texts.

    It tokenizes, trims, combines the segments and pads them.
    """
    import tensorflow as tf
    import tensorflow_text as text

    tokenizer, trimmer = text.FastSentencepieceTokenizer(proto), text.RoundRobinTrimmer(14)

    class Module(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="texts")])
        def f(self, texts: Any) -> Any:
            segments, numbers = text.combine_segments(trimmer.trim([tokenizer.tokenize(texts)]), 1, 2)
            codes, mask = text.pad_model_inputs(segments, 16)
            return {"codes": codes, "mask": mask, "segments": text.pad_model_inputs(numbers, 16)[0]}

    module = Module()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([module.f.get_concrete_function()], module)
    converter.allow_custom_ops = True
    results = module.f(tf.constant(texts))
    model = {"preprocessing": np.frombuffer(converter.convert(), np.uint8)}
    return model | {f"preprocessing_{key}": value.numpy() for key, value in results.items()}


def main(path: str) -> None:
    """Write the models, the texts and their codes."""
    from tensorflow_text.core.pybinds import pywrap_model_converter as converter
    from tensorflow_text.python.ops.fast_sentencepiece_tokenizer import gen_fast_sentencepiece_tokenizer as ops

    lines = Path(path).read_text(encoding="utf-8").splitlines()
    pick = random.Random(0)
    texts = [line.encode() for line in pick.sample(lines, 200)] + random_texts(200, pick)
    arrays: dict[str, Any] = {}
    arrays["texts"], arrays["texts_splits"] = packed(texts)
    for name, settings in MODELS.items():
        proto = trained(pick.sample(lines, 8000), settings)
        encoder = np.frombuffer(converter.convert_sentencepiece_model(proto), np.uint8)
        decoder = np.frombuffer(converter.convert_sentencepiece_model_for_decoder(proto), np.uint8)
        arrays[f"{name}_encoder"], arrays[f"{name}_decoder"] = encoder, decoder
        for label, flags in FLAGS.items():
            codes, splits = ops.tf_text_fast_sentencepiece_tokenize(encoder, np.array(texts, object), 0, 0.0, *flags)
            arrays[f"{name}_{label}"], arrays[f"{name}_{label}_splits"] = codes.numpy().astype(np.int16), splits.numpy()
        codes, splits = (arrays[f"{name}_plain{part}"] for part in ("", "_splits"))
        back = ops.tf_text_fast_sentencepiece_detokenize(decoder, codes.astype(np.int32), splits.astype(np.int64))
        arrays[f"{name}_texts"], arrays[f"{name}_texts_splits"] = packed(back.numpy().tolist())
        if name == "plain":
            arrays.update(preprocessing(proto, texts[:60]))
    file = io.BytesIO()
    np.savez(file, **arrays)
    DATA.write_bytes(lzma.compress(file.getvalue(), preset=9))


if __name__ == "__main__":
    main(sys.argv[1])
