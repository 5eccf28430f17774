"""Calling a model by names: one signature (`SignatureRunner`), or many rows on many threads and processes (`Predictor`). What comes in uses
an interpreter as its callers do, and changes nothing in how it runs.
"""
