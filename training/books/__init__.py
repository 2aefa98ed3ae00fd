"""Excerpts of sixteen books in the public domain, for users who bring no texts (see README.md)."""

from pathlib import Path

BOOKS = Path(__file__).parent
"""The folder that they lie in, one `.txt` a book."""
