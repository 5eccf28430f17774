"""Chat templates: code in Jinja's language that comes with a bundle, and so runs in a process of its own, with limits."""
