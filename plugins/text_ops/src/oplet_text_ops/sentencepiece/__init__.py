"""Sentencepiece models in TensorFlow Text's FlatBuffer format: normalization, pieces, and best-path tokenization.

A text is normalized and then cut into the pieces whose scores have the largest sum. Most models let each word be cut by itself.

trie          the double array of the pieces or of the prefixes that are replaced, as arrays
normalizer    texts as the model wants them
encoder       the tables of a tokenizer, and texts into codes
lattice       the best path through one text, as exact as the C++
columns       the best paths through many words at once
words         words that were cut before, and when a word's pieces are those that it has in any text
rows          rows of codes, one after another
decoder       codes into texts
"""
