"""Sentence boundary detection.

marks        the marks that end sentences, as patterns.
fragments    documents in fragments that such marks end.
"""
