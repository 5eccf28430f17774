"""The functions behind the commands of `oplet`, usable from Python. Each subpackage serves one command, or a few related ones;
nothing here prints, except `cli`.
"""
