"""Answers of a given form: JSON schemas, regular expressions, grammars."""
