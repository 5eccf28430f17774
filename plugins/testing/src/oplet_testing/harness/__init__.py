"""The test harness behind the contracts: it runs interpreters, poisons memory, injects faults and measures leaks.

Modules here use the runtime's internals, so that contracts and packages that use them need not.
"""
