"""Cells of LSTM and RNN: layout of weights, rows, gates, steps. What comes in computes one step, or many, without returning to
Python.
"""
