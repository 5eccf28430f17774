"""Convolutions and products with weights: filter layouts, register tiles, depthwise windows, output stages. They serve CONV_2D,
DEPTHWISE_CONV_2D, FULLY_CONNECTED and similar ops.
"""
