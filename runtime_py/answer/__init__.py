"""Answers: conversation, generation, sampling, what was measured of it."""
