"""Operators on sequences: CTC decoders and losses, edit distances and recurrent cells. Time comes first in most of them."""
