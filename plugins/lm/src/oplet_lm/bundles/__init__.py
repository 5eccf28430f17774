"""Bundles of language models: files that hold models, a tokenizer and metadata. Nothing in them is trusted.

Each module imports only those before it: metadata, sections, bundle.
"""
