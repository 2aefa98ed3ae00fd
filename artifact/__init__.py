"""The format: what `export` writes and every runtime reads. No torch is needed to read it."""
