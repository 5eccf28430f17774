"""Ops with windows over volumes and images: convolutions, pools, morphological dilation, and their gradients."""
