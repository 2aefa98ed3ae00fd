"""Running artifacts: Algorithm 1 (`session`), engines, text in and out. No torch, no transformers."""
