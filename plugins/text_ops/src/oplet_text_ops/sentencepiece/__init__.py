"""Sentencepiece models in TensorFlow Text's FlatBuffer format: normalization, pieces, and best-path tokenization.

A text is normalized, then divided into the pieces with the largest sum of scores. Most models allow tokenizing word by word.

trie          double-array trie of pieces or replaced prefixes, as arrays
normalizer    text normalization
encoder       tokenizer: text to ids
lattice       best path through one text, with the rounding of the C++ code
columns       best paths through many words at once
words         cache of words whose pieces do not depend on the surrounding text
rows          joining of rows of ids
decoder       detokenizer: ids to text
"""
