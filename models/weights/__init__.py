"""Weights that aren't plain float32 parameters in memory."""
