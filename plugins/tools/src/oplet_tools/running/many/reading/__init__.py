"""Sources of rows: folders, arrays, JSON lines, Parquet and Arrow.

Each source yields rows one at a time: a row's name, and handles ("parts") from which a worker loads the values of inputs.
"""
