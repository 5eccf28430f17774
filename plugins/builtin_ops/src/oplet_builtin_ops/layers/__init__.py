"""What operators with weights or windows share."""
