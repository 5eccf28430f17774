"""Files out of what was cut: wheels, zip archives, programs. What comes in writes, names and describes them."""
