"""The models of tokenizers and normalizers that a `.tflite` model carries, ready to run."""
