"""Ops on images: sizes, crops, patches, colours, files, drawings and boxes. Most take images of shape [batch, height, width,
channels].
"""
