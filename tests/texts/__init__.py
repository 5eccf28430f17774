"""What people read of a stranger's model: every text in which one of its names could stand."""
