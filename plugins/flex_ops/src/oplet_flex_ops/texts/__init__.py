"""Shared string functions, independent of nodes except `elementwise`. Strings are bytes.

elementwise   operators that compute one value for each string
fingerprints  FarmHash, MurmurHash and SipHash of strings
numbers       numbers from text, as strictly as TensorFlow reads them, and numbers as text
regular       regular expressions of RE2, and the replacement of their matches
"""
