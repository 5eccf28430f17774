"""LSTM and RNN cells: weight layout, products, gates, steps; one or many time steps per call of machine code."""
