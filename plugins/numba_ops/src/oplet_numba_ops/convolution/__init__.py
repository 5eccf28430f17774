"""Convolutions and products with weights: filter layouts, tiles, depthwise windows, the output stage of sums. What comes in
serves CONV_2D, DEPTHWISE_CONV_2D or FULLY_CONNECTED.
"""
