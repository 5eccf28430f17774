"""Measuring in a child process, so that an engine that crashes or hangs does not take the program along.

`job` describes what is measured as JSON, `parent` starts the process and follows it, `measuring` is what runs in it, and `trial_json`
writes and reads trials. `subprocesses` starts every Python process of oplet's own, those of the tools as well.
"""
