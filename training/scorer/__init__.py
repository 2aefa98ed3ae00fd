"""`train-scorer`: learns which pairs to keep from the attention that later text pays."""
