"""Sentencepiece models in their training format, a ModelProto, as models carry whose tokenizer was created inside the function.

messages      Protocol Buffers, field by field.
model         the pieces of a model and its settings.
normalizer    texts as the model wants them, with the places of their bytes.
unigram       the best path through a text, of models of unigrams.
merging       pairs of pieces merged, of models of byte pairs.
processor     texts into pieces and back.
nodes         the inputs that the ops have in common.
"""
