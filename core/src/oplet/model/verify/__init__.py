"""Verification of models: the rules of the format beyond the structure of FlatBuffers.

Each module checks one part of a model and raises ModelError; none changes the model.
"""
