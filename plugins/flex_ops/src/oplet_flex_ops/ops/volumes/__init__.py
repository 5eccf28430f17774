"""Ops with windows over volumes and images: convolutions, pools, morphological dilation. Their gradients are here, too."""
