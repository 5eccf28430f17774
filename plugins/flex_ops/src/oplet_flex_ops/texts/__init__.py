"""Strings, which are bytes: what the operators on them share. Nothing here knows a node, except `elementwise`.

elementwise   operators that compute one value for each string
fingerprints  FarmHash, MurmurHash and SipHash of strings
numbers       numbers from text, as strictly as TensorFlow reads them, and numbers as text
regular       regular expressions of RE2, and the replacement of their matches
"""
