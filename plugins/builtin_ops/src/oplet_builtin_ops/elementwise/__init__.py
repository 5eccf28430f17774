"""What operators that work value by value share."""
