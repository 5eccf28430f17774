"""What operators that move, gather, pad, resize and reduce share."""
