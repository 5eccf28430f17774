"""Shared string functions, independent of nodes except `elementwise`. Strings are bytes.

elementwise   registrations of ops that map each string to one value
fingerprints  FarmHash, MurmurHash and SipHash of strings
numbers       parsing of numbers, as strict as TensorFlow's, and printf formatting
regular       regular expressions of RE2, and the replacement of their matches
"""
