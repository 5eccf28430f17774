"""Operators on images: sizes, crops, patches, colours, files, drawings and boxes. Most take images as are [batch, height, width, channels]."""
