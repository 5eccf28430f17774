"""Chat templates: code in Jinja's language that comes with a bundle, and so runs in a process of its own, with limits.

`template` asks, `child` is the process; it imports nothing of oplet.
"""
