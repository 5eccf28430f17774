"""Operators that move windows over volumes and images: convolutions, pools and dilations. Their gradients are here too."""
