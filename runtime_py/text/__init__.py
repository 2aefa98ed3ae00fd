"""Texts to tokens and back: tokenizer, chat template, what a template may do."""
