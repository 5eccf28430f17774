"""Tokenizer and normalizer models that a `.tflite` model carries, parsed and ready to run.

wordpiece         the vocabulary of FastWordpieceTokenizer
longest_match     tokens of many words at once
linear_cut        tokens of one text, where it needs the linear algorithm
detokenizer       from tokens back to texts
bert_normalizer   the table of FastBertNormalizer
words             words between white space
pieces            tokens of words, each word cut once
"""
