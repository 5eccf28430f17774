"""Sentencepiece models in their training format, a ModelProto, as models carry whose tokenizer was created inside the function.
Converted ones are in `oplet_text_ops.sentencepiece`.

messages      reader of Protocol Buffers
model         parsed ModelProto: pieces and settings
normalizer    text normalization with source offsets
unigram       unigram tokenization by the best path
merging       BPE tokenization by merging pairs
processor     tokenization and detokenization
nodes         the ops' shared inputs
"""
