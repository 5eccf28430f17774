"""The .tflite file format: enumerations, tables, and how they are read and written. What comes in follows the FlatBuffers schema and knows
nothing of what tables mean.
"""
