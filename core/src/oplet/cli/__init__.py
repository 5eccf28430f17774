"""The command `oplet`: its entry, its settings, and how it prints. `commands` holds one thin module a command; what a command does is in
`oplet.tools`.
"""
