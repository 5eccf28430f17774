"""The .tflite file format: enumerations, tables, and the reader and writer of FlatBuffers. Modules here follow the schema and give the
tables no meaning.
"""
