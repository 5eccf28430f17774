"""Descriptions of runs: which package serves which node and why, profiles, errors that name a node. Modules here read the
runtime's state and change nothing.
"""
