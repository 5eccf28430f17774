"""The rules of the format that a FlatBuffer's structure does not say. A module checks one part of a model and raises ModelError; none changes
anything.
"""
