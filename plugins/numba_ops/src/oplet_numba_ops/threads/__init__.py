"""Threads that share a kernel's work: how it is split, the words by which they agree, the team. What comes in knows kernels and no operator."""
