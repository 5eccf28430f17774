"""The operators of TensorFlow Text, without TensorFlow.

Their modules, in `oplet_text_ops.ops`, are imported when a model needs them.
"""

from __future__ import annotations

from oplet import MutableOpResolver, hookimpl

#: The module of each operator, and where a module has several, the constant in it: "module:NAME". All are of version 1.
OPS: dict[str, str] = {
    "CaseFoldUTF8": "normalization",
    "FastBertNormalize": "fast_bert_normalize",
    "FastWordpieceTokenizeWithOffsets": "fast_wordpiece:TOKENIZE",
    "NormalizeUTF8": "normalization",
    "Placeholder": "placeholder",
    "RaggedGather": "ragged:GATHER",
    "RaggedRange": "ragged:RANGE",
    "RaggedTensorToTensor": "ragged:TO_TENSOR",
    "RegexSplitWithOffsets": "regex_split_with_offsets",
    "SentenceFragmentsV2": "sentence_fragments",
    "SentencepieceDetokenizeOp": "sentencepiece:DETOKENIZE",
    "SentencepieceOp": "sentencepiece:MODEL",
    "SentencepieceTokenizeOp": "sentencepiece:TOKENIZE",
    "SentencepieceTokenizeWithOffsetsOp": "sentencepiece:TOKENIZE",
    "StridedSlice": "strided_slice",
    "StringLength": "string_length",
    "TFSentencepieceDetokenizeOp": "fast_sentencepiece:DETOKENIZE",
    "TFSentencepieceTokenizeOp": "fast_sentencepiece:TOKENIZE",
    "TFText>ByteSplitByOffsets": "byte_split:PARTS",
    "TFText>ByteSplitWithOffsets": "byte_split:BYTES",
    "TFText>FastSentencepieceDetokenize": "fast_sentencepiece:DETOKENIZE",
    "TFText>FastSentencepieceTokenize": "fast_sentencepiece:TOKENIZE",
    "TFText>FastWordpieceDetokenize": "fast_wordpiece:DETOKENIZE",
    "TFText>NgramsStringJoin": "ngrams_string_join",
    "TFText>RoundRobinGenerateMasks": "round_robin:MASKS",
    "TFText>RoundRobinTrim": "round_robin:TRIM",
    "TFText>Utf8Binarize": "utf8_binarize",
    "TFText>WhitespaceTokenizeWithOffsetsV2": "white_space:WITH_OFFSETS",
    "UnicodeDecode": "unicode:DECODE",
    "UnicodeDecodeWithOffsets": "unicode:DECODE",
    "UnicodeEncode": "unicode:ENCODE",
    "UnicodeScript": "unicode:SCRIPT",
    "UnicodeScriptTokenizeWithOffsets": "white_space:CODE_POINTS",
    "UnicodeTranscode": "unicode:TRANSCODE",
    "WhitespaceTokenizeWithOffsets": "white_space:CODE_POINTS",
    "tftext:Ngrams": "ngrams_string_join",
    "tftext:WhitespaceTokenizer": "white_space:WORDS",
}

#: Those that converters also write as TensorFlow's own, as "Flex" and the name, with a NodeDef: all but what is no operator of
#: TensorFlow's, and what oplet-flex-ops brings under that name.
FLEX_OPS = sorted(
    name
    for name in OPS
    if not name.startswith(("TFSentencepiece", "tftext:", "Placeholder", "Ragged", "StridedSlice", "StringLength"))
)


@hookimpl
def register_ops(resolver: MutableOpResolver) -> None:
    """Register the operators with the resolver, under their custom-op names in models."""
    for name, module in OPS.items():
        target = f"{__name__}.ops.{module}" + ("" if ":" in module else ":REGISTRATION")
        resolver.add_custom(name, target)
        if name in FLEX_OPS:
            resolver.add_custom(f"Flex{name}", target)
