"""The cells of LSTM and RNN, and how they run over a sequence."""
