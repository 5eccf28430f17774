"""Sources of rows: folders, arrays, JSON lines, Parquet and Arrow.

Each gives rows one at a time, as names and parts; a worker reads the values of a part when it takes the row.
"""
