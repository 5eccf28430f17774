"""Ops for on-device training: gradients, losses, variables and optimizer steps.

Small operators share a module by kind; each is a constant there, named like the operator.
"""
