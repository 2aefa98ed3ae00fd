"""Reading checkpoint files that transformers reads in part, or not as they are meant."""
