"""Shared parts of control-flow, stateful and random ops: subgraph calls, resources, random generators."""
