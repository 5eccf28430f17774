"""Ops on sequences: CTC decoders and losses, edit distances, recurrent cells. Time is the first axis in most."""
