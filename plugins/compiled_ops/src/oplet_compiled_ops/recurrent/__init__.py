"""LSTM and RNN cells: weight layout, products, gates, steps. A call of machine code computes one time step or many."""
