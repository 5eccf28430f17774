"""What a model's metadata (TFLITE_METADATA) say of its inputs and outputs, and the files that are attached to it. It is read only where a
command needs it, checked as the model is, and within bounds of its own.
"""
