"""What the commands do, usable from Python."""
