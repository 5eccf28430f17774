"""The commands `oplet build` and `oplet select`. They parse options, and print what the other rooms return."""
