"""Computes a written program again in plain float32 arithmetic, from the file alone."""
