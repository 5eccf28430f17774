"""Which statements, modules and data files a kernel needs, and source that holds no more. What comes in reads code and never runs it."""
