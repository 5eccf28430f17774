"""Binary ops on unquantized numbers: comparisons, integer arithmetic, logic, divisions. Quantized numbers are compared by tables."""
