"""macOS, Windows and a browser, as far as they can be played on Linux: what oplet's modules ask of Python is answered as there.

`names` lists what these systems have not, `systems` plays one for the modules of oplet alone, and `child` is a process there. What only
the systems themselves show is how they open files that are mapped or locked, their libraries, their consoles and their loaders.
"""
