"""Running a language model: caches and steps, tokens, sampling.

Each module imports only those before it: step, embedder, executor, tokenizer, sampler.
"""
