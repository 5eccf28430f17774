"""Characters: decoding of bytes, properties of code points, normalization. Nothing here knows an operator but `decoding`.

utf8             UTF-8 as ICU reads it
code_points      white space, punctuation and other properties, of ICU's Unicode
normalization    NFC, NFD, NFKC, NFKD and NFKC_Casefold of ICU's Unicode
encodings        from bytes to code points and back, as TensorFlow does with ICU
regular          regular expressions of RE2
decoding         the kernel of the ops that decode
"""
