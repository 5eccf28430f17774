"""Side-by-side measurements with other runtimes; `python -m benchmarks` runs them all."""
