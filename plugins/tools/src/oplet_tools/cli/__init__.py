"""The command `oplet`: entry point, common options, and printing.

`commands` has one thin module for each command; the functions behind them are in `oplet_tools`.
"""
