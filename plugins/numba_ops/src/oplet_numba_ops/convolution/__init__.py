"""Convolutions and products with weights: layouts of filters, tiles, depthwise windows, the stage that makes outputs of sums. What comes in
serves CONV_2D, DEPTHWISE_CONV_2D or FULLY_CONNECTED.
"""
