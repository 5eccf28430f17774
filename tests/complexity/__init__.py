"""Small models of every operator that ask for as much as the limits allow: sizes, ranks, counts, windows, groups and loops blown up."""
