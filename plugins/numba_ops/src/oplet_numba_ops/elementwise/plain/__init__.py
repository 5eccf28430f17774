"""Binary ops on unquantized numbers (or numbers compared by tables): comparisons, integer arithmetic, logic, divisions."""
