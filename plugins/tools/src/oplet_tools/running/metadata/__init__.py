"""Reads a model's metadata (TFLITE_METADATA) on its inputs and outputs, and the files attached to it.

It is read only where a command needs it, checked as the model is, and with limits of its own.
"""
