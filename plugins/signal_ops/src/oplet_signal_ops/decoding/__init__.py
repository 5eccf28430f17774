"""Tensors that tflite-micro keeps compressed: by tables of values, without their zeros, or in Huffman codes."""
