"""Run oplet on processors that this machine is not: emulated aarch64, and emulated or restricted x86-64.

`debian` fetches packages of a distribution and unpacks them into a folder, `environment` makes a Python with its wheels of them, `levels`
names the processors, and `python -m scripts.emulated` runs a command in it.
"""
