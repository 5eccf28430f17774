"""The .tflite file format: enumerations, tables, and how they are read and written."""
