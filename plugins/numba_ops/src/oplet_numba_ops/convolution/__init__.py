"""Convolutions and products with weights: filter layouts, register tiles, depthwise windows, output stages, for CONV_2D,
DEPTHWISE_CONV_2D or FULLY_CONNECTED.
"""
