"""Measuring what a state of fixed size remembers: perplexity by position, facts in long texts."""
