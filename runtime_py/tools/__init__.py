"""Calls of tools: how checkpoints write them, as data; grammars for them; reading them back."""
