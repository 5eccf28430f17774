"""The test harness behind the contracts: it runs interpreters, poisons memory, injects faults and measures what is left behind.
What comes in knows the runtime's inside, so that contracts and packages that use them need not.
"""
