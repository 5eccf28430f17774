"""The .tflite file format: enumerations, tables, and the reader and writer of FlatBuffers. Modules here follow the schema and do
not interpret the tables.
"""
