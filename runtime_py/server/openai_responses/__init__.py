"""OpenAI's Responses API: an adapter to `ask.Ask`."""
