"""The operators of TensorFlow Text, without TensorFlow.

Each is one module of `oplet_text_ops.ops`, which is imported when a model needs it.
"""

from __future__ import annotations

from oplet import MutableOpResolver, hookimpl

#: The module of each operator; all are of version 1.
OPS: dict[str, str] = {
    "CaseFoldUTF8": "case_fold_utf8",
    "FastBertNormalize": "fast_bert_normalize",
    "FastWordpieceTokenizeWithOffsets": "fast_wordpiece_tokenize_with_offsets",
    "NormalizeUTF8": "normalize_utf8",
    "Placeholder": "placeholder",
    "RaggedGather": "ragged_gather",
    "RaggedRange": "ragged_range",
    "RaggedTensorToTensor": "ragged_tensor_to_tensor",
    "RegexSplitWithOffsets": "regex_split_with_offsets",
    "SentenceFragmentsV2": "sentence_fragments",
    "SentencepieceDetokenizeOp": "sentencepiece_detokenize_op",
    "SentencepieceOp": "sentencepiece_op",
    "SentencepieceTokenizeOp": "sentencepiece_tokenize_op",
    "SentencepieceTokenizeWithOffsetsOp": "sentencepiece_tokenize_with_offsets_op",
    "StridedSlice": "strided_slice",
    "StringLength": "string_length",
    "TFSentencepieceDetokenizeOp": "fast_sentencepiece_detokenize",
    "TFSentencepieceTokenizeOp": "fast_sentencepiece_tokenize",
    "TFText>ByteSplitByOffsets": "byte_split_by_offsets",
    "TFText>ByteSplitWithOffsets": "byte_split_with_offsets",
    "TFText>FastSentencepieceDetokenize": "fast_sentencepiece_detokenize",
    "TFText>FastSentencepieceTokenize": "fast_sentencepiece_tokenize",
    "TFText>FastWordpieceDetokenize": "fast_wordpiece_detokenize",
    "TFText>NgramsStringJoin": "ngrams_string_join",
    "TFText>RoundRobinGenerateMasks": "round_robin_generate_masks",
    "TFText>RoundRobinTrim": "round_robin_trim",
    "TFText>Utf8Binarize": "utf8_binarize",
    "TFText>WhitespaceTokenizeWithOffsetsV2": "whitespace_tokenize_with_offsets_v2",
    "UnicodeDecode": "unicode_decode",
    "UnicodeDecodeWithOffsets": "unicode_decode_with_offsets",
    "UnicodeEncode": "unicode_encode",
    "UnicodeScript": "unicode_script",
    "UnicodeScriptTokenizeWithOffsets": "code_point_tokenizers",
    "UnicodeTranscode": "unicode_transcode",
    "WhitespaceTokenizeWithOffsets": "code_point_tokenizers",
    "tftext:Ngrams": "ngrams_string_join",
    "tftext:WhitespaceTokenizer": "whitespace_tokenizer",
}

#: Those that converters also write as TensorFlow's own, as "Flex" and the name, with a NodeDef: all but what is no operator of
#: TensorFlow's, and what oplet-flex-ops brings under that name.
FLEX_OPS = sorted(
    name
    for name in OPS
    if not name.startswith(("TFSentencepiece", "tftext:", "Placeholder", "Ragged", "StridedSlice", "StringLength"))
    and (not name.startswith("Unicode") or "Script" in name)
)


@hookimpl
def register_ops(resolver: MutableOpResolver) -> None:
    """Register the operators with the resolver, under their custom-op names in models."""
    for name, module in OPS.items():
        resolver.add_custom(name, f"{__name__}.ops.{module}:REGISTRATION")
    for name in FLEX_OPS:
        resolver.add_custom(f"Flex{name}", f"{__name__}.ops.{OPS[name]}:REGISTRATION")
