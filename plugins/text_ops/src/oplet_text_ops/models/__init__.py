"""Tokenizer and normalizer models that a `.tflite` model carries, parsed and ready to run.

wordpiece         the vocabulary of FastWordpieceTokenizer
longest_match     greedy tokenization of many words at once
linear_cut        tokenization of one text by the linear algorithm (LinMaxMatch)
detokenizer       token ids to text
bert_normalizer   the table of FastBertNormalizer
words             splitting at white space
pieces            cache of tokenized words
"""
