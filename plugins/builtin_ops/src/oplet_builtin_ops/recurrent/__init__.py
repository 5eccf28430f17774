"""The cells of LSTM and RNN, and their loops over a sequence."""
