"""Running artifacts: Algorithm 1 (`session/`), engines, text in and out; no torch needed."""
