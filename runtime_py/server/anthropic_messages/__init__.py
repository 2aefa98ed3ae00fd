"""Anthropic's Messages API: an adapter to `ask.Ask`."""
